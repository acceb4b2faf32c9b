"""The figures of the benches are computed as their names say."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrata_memory.bench.metrics import (
    Timing,
    any_at,
    fraction_at,
    mean,
    percentile,
    precision_at,
)

durations = st.lists(st.floats(min_value=0, max_value=1e3), min_size=1, max_size=300)


@given(samples=durations, percent=st.floats(min_value=0.1, max_value=100))
def test_percentile_is_the_nearest_rank(samples, percent):
    value = percentile(samples, percent)

    not_above = sum(sample <= value for sample in samples)
    below = sum(sample < value for sample in samples)
    assert not_above >= percent / 100 * len(samples) - 1e-6
    assert below < percent / 100 * len(samples) + 1e-6
    assert value == np.percentile(samples, percent, method="inverted_cdf")


def test_percentile_of_a_known_list():
    assert percentile([15, 20, 35, 40, 50], 30) == 20
    assert percentile([15, 20, 35, 40, 50], 100) == 50
    assert percentile([3.0], 1) == 3.0


@pytest.mark.parametrize(("samples", "percent"), [([], 50), ([1.0], 0), ([1.0], 100.1)])
def test_percentile_refuses_what_is_not_defined(samples, percent):
    with pytest.raises(ValueError):
        percentile(samples, percent)


def test_timing_is_in_milliseconds():
    timing = Timing.of([number / 1000 for number in range(1, 101)])

    assert timing.samples == 100
    assert math.isclose(timing.p50_ms, 50)
    assert math.isclose(timing.p95_ms, 95)
    assert math.isclose(timing.p99_ms, 99)
    assert math.isclose(timing.mean_ms, 50.5)


def test_any_and_fraction_look_at_the_first_k_only():
    ranked = ["a", "b", "c", "d"]

    assert any_at(ranked, {"c"}, 2) == 0
    assert any_at(ranked, {"c"}, 3) == 1
    assert fraction_at(ranked, {"a", "d", "z"}, 2) == pytest.approx(1 / 3)
    assert fraction_at(ranked, {"a", "d", "z"}, 4) == pytest.approx(2 / 3)
    assert fraction_at(ranked, set(), 4) == 0


def test_precision_divides_by_k_even_when_fewer_were_found():
    assert precision_at(["a", "b"], {"a", "b"}, 10) == pytest.approx(0.2)
    assert precision_at(["a", "x", "b"], {"a", "b"}, 2) == pytest.approx(0.5)
    with pytest.raises(ValueError):
        precision_at(["a"], {"a"}, 0)


def test_mean_of_nothing_is_zero():
    assert mean([]) == 0
    assert mean([1, 2]) == 1.5
