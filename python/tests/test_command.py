"""The command line from Python: the same text and exit statuses as the program's."""

import json
import signal
import subprocess
import sys
from importlib.metadata import entry_points, version

from conftest import computes

import antinoise as an


def test_help_and_version(antinoise):
    helped = antinoise("--help")
    assert helped.returncode == 0 and "Usage: antinoise" in helped.stdout and "calibrate" in helped.stdout
    assert (
        antinoise("--version").stdout
        == f"antinoise {an.__version__}\n"
        == f"antinoise {version('antinoise')}\n"
    )
    assert antinoise().returncode == 2 and "Usage: antinoise" in antinoise().stderr


def test_exit_statuses(antinoise, tmp_path):
    good = antinoise("calibrate", "--epsilon", 2, "--delta", "1e-6", "--json")
    assert good.returncode == 0 and json.loads(good.stdout)["noise_multiplier"] == an.calibrate(2, 1e-6)
    bad = antinoise("calibrate", "--epsilon", "-2", "--delta", "1e-6")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr == "error: --epsilon is -2.0 but must be a finite number above 0\n"
    assert antinoise("no-such-command").returncode == 2
    assert antinoise("verify", tmp_path / "absent").returncode == 2
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "antinoise", "calibrate", "--epsilon", "2", "--delta", "1e-6"]
        assert subprocess.run(command, stdout=full, stderr=subprocess.PIPE).returncode == 1


def test_a_signal_stops_it_with_its_own_status(tmp_path, key_file):
    for sent, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        arguments = ["noise", "--strategy", "blt:4", "--steps", "100000", "--dim", "1e6", "--key-file"]
        command = [
            sys.executable,
            "-m",
            "antinoise",
            *arguments,
            key_file,
            "--count",
            "2000",
            "--out",
            tmp_path / "noise.npy",
        ]
        running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        running.stderr.readline()
        running.send_signal(sent)
        assert running.wait() == status
        running.stderr.close()
        assert [path.name for path in tmp_path.iterdir()] == ["key"]
    # A command without clean-up ends at once on Ctrl-C.
    endless = [
        sys.executable,
        "-m",
        "antinoise",
        "loss",
        "--strategy",
        "dense",
        "--steps",
        "2000",
        "--objective",
        "max",
    ]
    running = subprocess.Popen(endless, stderr=subprocess.DEVNULL)
    computes(running, 1)
    running.send_signal(signal.SIGINT)
    assert running.wait() == -signal.SIGINT


def test_the_console_script_is_the_same_program():
    (script,) = entry_points(group="console_scripts", name="antinoise")
    assert script.value == "antinoise.__main__:main"
    from antinoise.__main__ import main

    assert script.load() is main
