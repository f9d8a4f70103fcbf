"""What Java said is told in one line."""

from throttle.spark.start.java_words import cause

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
