"""Options that Java takes from the environment; what it said, in one line."""

import pytest

from throttle.spark.start.java_words import cause, named, without_heap

VM = """\
Picked up _JAVA_OPTIONS: -XX:NoSuchThing -Dpassword=secret
Unrecognized VM option 'NoSuchThing'
Error: Could not create the Java Virtual Machine.
"""
TRACE = """\
WARNING: package sun.security.action not in java.base
Using Spark's default log4j profile: org/apache/spark/log4j2-defaults.properties
Exception in thread "main" java.lang.ExceptionInInitializerError
\tat org.apache.spark.deploy.SparkSubmit.main(SparkSubmit.scala)
Caused by: java.net.UnknownHostException: box: box: Name or service not known
\tat java.base/java.net.InetAddress.getLocalHost(Unknown Source)
\t... 10 more
Caused by: java.net.UnknownHostException: box: Name or service not known
\t... 18 more
"""


def test_the_words_of_a_java_that_does_not_run_name_the_variable() -> None:
    """Not what it says: that may be secret."""
    assert cause(VM.splitlines()) == (
        "Picked up _JAVA_OPTIONS; Unrecognized VM option "
        "'NoSuchThing'; Error: Could not create the Java Virtual Machine."
    )


def test_of_a_stack_trace_the_first_line_and_the_last_cause_are_told() -> None:
    """With what to do about a machine whose name has no address."""
    assert cause(TRACE.splitlines()) == (
        'Exception in thread "main" java.lang.ExceptionInInitializerError; Caused by: '
        "java.net.UnknownHostException: box: Name or service not known (does this "
        "machine's name have an address? if not: SPARK_LOCAL_IP)"
    )


def test_the_line_has_a_bound_and_may_be_empty() -> None:
    assert len(cause(f"line {number}" for number in range(1_000))) == 400
    assert cause(["", "\tat a.b.c"]) == ""


@pytest.mark.parametrize(
    "option",
    [
        *("-Xmx64m", "-Xms1g", "-Xmn10m", "-XX:MaxHeapSize=67108864"),
        *("-XX:MaxRAMPercentage=10.0", "-XX:MaxRAM=100m", "-XX:+UseG1GC"),
    ],
)
def test_the_heap_is_taken_out_and_named(option: str) -> None:
    """With the variable it was in; what else it says stays."""
    changed, left_out = without_heap({"_JAVA_OPTIONS": f"-Da=b  {option} -Dc=d"})
    assert changed == {"_JAVA_OPTIONS": "-Da=b -Dc=d"}
    assert left_out == [f"_JAVA_OPTIONS={option}"]


def test_what_is_not_of_the_heap_stays_as_it_is() -> None:
    """Nothing is changed, nothing told."""
    environment = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -Xlog:gc", "PATH": "/"}
    assert without_heap(environment) == ({}, [])
    assert without_heap({}) == ({}, [])


def test_all_three_variables_are_named() -> None:
    """In a fixed order; an empty one is none."""
    environment = {"_JAVA_OPTIONS": "-Da=b", "JAVA_TOOL_OPTIONS": "-X", "JDK_X": "y"}
    environment["JDK_JAVA_OPTIONS"] = ""
    assert named(environment) == ["JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS"]
