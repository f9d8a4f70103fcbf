"""Options that Java takes from the environment."""

import pytest

from throttle.spark.start.java_variables import named, without_heap


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
