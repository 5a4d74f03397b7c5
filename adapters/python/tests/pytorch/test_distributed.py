"""Tests of `ndscatter.distributed`: several processes on one machine, with the backend gloo."""

import os
import pathlib
import subprocess
import sys

import numpy
import pytest
import ranks
import sharded_cases
import torch

from ndscatter.distributed import simulate

IS_FULL = os.environ.get("NDSCATTER_FULL") == "1"


def test_small_cases_have_the_bits_of_one_process():
    seeds = range(10_000 if IS_FULL else 100)
    assert ranks.run(7, sharded_cases.random_cases, seeds, 12, 8, limit=3600) == [None] * 7


def test_large_cases_have_the_bits_of_one_process():
    seeds = range(100_000, 100_050 if IS_FULL else 100_005)
    assert ranks.run(7, sharded_cases.random_cases, seeds, 3000, 20_000, limit=3600) == [None] * 7


def test_an_error_of_one_rank_is_an_error_of_all_ranks():
    first, *others = ranks.run(3, sharded_cases.refused_calls)
    assert all(found == first for found in others)
    assert [(rank, error) for rank, error, _ in first] == [
        (1, "IndexError"),
        (1, "TypeError"),
        (1, "ValueError"),
        (0, "ValueError"),
        (0, "IndexError"),
        (0, "ValueError"),
        (0, "ValueError"),
    ]
    assert "rank 1: IndexError: index 10 of tuple 1 is out of bounds" in first[0][2]


def test_each_name_of_a_reduction():
    assert ranks.run(2, sharded_cases.names_of_reductions) == [True, True]


# A scatter in one piece has these collective calls: counts (start, wait), agreement, rows of the plan
# (start, wait), agreement, rows (start, wait), agreement.
@pytest.mark.sampled(3)
@pytest.mark.parametrize("stage", range(9))
def test_a_rank_that_ends_before_the_first_write(stage):
    found = ranks.run(3, sharded_cases.ending_rank, stage, 1 << 20, dying=[1])
    assert found[0] == found[2] == ([1], False, False)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("stage", [7, 9, 12])
def test_a_rank_that_ends_between_two_pieces(stage):
    found = ranks.run(3, sharded_cases.ending_rank, stage, 1, dying=[1])
    for result in (found[0], found[2]):
        missing, is_torn, has_written = result
        assert missing == [1]
        assert is_torn or not has_written
        # Before call 12, all ranks have applied the first piece, with rows of every rank.
        assert is_torn and has_written or stage < 12


@pytest.mark.long
def test_a_rank_that_is_late():
    found = ranks.run(2, sharded_cases.late_rank, timeout=2)
    assert found[0] is False


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("kind", "count", "other"), [("blocks", 1, "blocks"), ("modulo", 3, "starts")])
def test_checkpoints_load_in_another_number_of_ranks(tmp_path, kind, count, other):
    ranks.run(4, sharded_cases.save, str(tmp_path), kind)
    expected = torch.arange(11)[:, None] * 10.0 + torch.arange(3)
    for found in ranks.run(count, sharded_cases.load, str(tmp_path), other):
        assert torch.equal(found, expected)


def test_training_does_not_depend_on_the_number_of_ranks():
    for tables in ranks.run(3, sharded_cases.train_in_groups, 3):
        assert len(tables) == 4
        for (_, bags), found in tables.items():
            expected = tables[False, bags][0]
            assert expected.any()
            assert all(sharded_cases.same(table, expected) for table in found)


@pytest.mark.long
def test_the_example_has_one_checksum_for_any_number_of_processes():
    example = pathlib.Path(__file__).parents[2] / "examples/distributed_table.py"
    program = [str(example), "--rows", "500", "--steps", "4", "--batch", "64"]
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    printed = [
        subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=120)
        for command in (program, [*launcher, *program])
    ]
    lines = [done.stdout.splitlines()[-2:] for done in printed]
    assert "checksum" in lines[0][1], printed[0].stderr
    assert lines[0][1] == lines[1][1], printed[1].stderr


def test_the_simulator_uses_the_frequencies_of_rows():
    problem = simulate.Problem(rows=3_000_000, tuples=40_000, width=1, zipf=1.2)
    share = 1 / numpy.arange(1, 3_000_001.0) ** 1.2
    expected = 8 * share[::8].sum() / share.sum()
    assert problem.busiest_share(8) == pytest.approx(expected, rel=1e-3)
    # The indices come from a continuous distribution, in which frequent rows have other shares.
    drawn = (problem.indices(0) % 8 == 0).float().mean() * 8
    assert drawn == pytest.approx(expected, rel=0.4)
    assert simulate.Problem(100, 10, 1, 0.0).busiest_share(7) == 1


def test_the_simulator_predicts_each_step(capsys, monkeypatch, tmp_path):
    network = simulate.Network(bandwidth=1e9, latency=1e-3)
    problem = simulate.Problem(rows=1000, tuples=500, width=8, zipf=0.0)
    step = simulate.predict(problem, 4, network)
    assert step.link == pytest.approx(500 * (8 * 4 + 8) * 3 / 4 / 1e9)
    # Two exchanges and one piece with three other ranks, and three agreements of two rounds there and back.
    assert step.messages == pytest.approx((3 * 3 + 2 * 3 * 2) * 1e-3)
    assert step.bound == "latency" and step.total > step.messages
    picture = tmp_path / "picture.svg"
    arguments = ["--rows", "500", "--tuples", "100", "--ranks", "2", "4096", "--plot", str(picture)]
    monkeypatch.setattr(sys, "argv", ["simulate", *arguments])
    simulate.main()
    drawn = picture.read_text()
    assert all(text in drawn for text in ("PREDICTED", "weak scaling", "strong scaling", "messages", "4096"))
    printed = capsys.readouterr().out
    assert printed.count("4096") == 2 and "weak scaling" in printed and "strong scaling" in printed


@pytest.mark.long
def test_a_table_that_one_process_cannot_hold():
    found = ranks.run(4, sharded_cases.train_in_little_memory, 16_000_000, 32, 600 << 20)
    assert all(result == (found[0][0], found[0][1]) for result in found), found
