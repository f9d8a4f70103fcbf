"""Loaded by Spark, which imports whatever is named pyspark_* to find data sources.

Ours is registered by the job itself. But the process that looks is the one of Spark's
that has nothing else to do with us, and a minute later it prints a traceback because
Spark has hung up on it.
"""

from throttle.spark.worker_daemon import quiet_hang_ups

quiet_hang_ups()
