"""A Java for tests: it starts with a third less work; in the long run it is slower."""

QUICK_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
QUICK_JAVA = {"JDK_JAVA_OPTIONS": QUICK_OPTIONS}
"""The environment of a process that starts one."""
