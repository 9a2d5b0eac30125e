"""Several training processes on this machine, for tests."""

import datetime
import multiprocessing
import os
import socket

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

_preloaded = ["torch", "torch.distributed.fsdp", "torch.distributed.checkpoint", "antinoise.torch", "pytest"]


def preload(*modules):
    """Modules that the fork server imports once for all processes."""
    _preloaded.extend(modules)
    multiprocessing.set_forkserver_preload(_preloaded)


preload()


def started(rank, world, port, work, *arguments):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=world, timeout=datetime.timedelta(seconds=60))
    work(*arguments)
    dist.barrier()
    dist.destroy_process_group()


def on_ranks(world, work, *arguments):
    """Runs `work` in `world` processes of a fork server. They end without shutting the interpreter down:
    during a shutdown, a thread of gloo that releases a tensor occasionally aborts the process
    (https://github.com/pytorch/pytorch/issues/190489).
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    mp.start_processes(started, (world, port, work, *arguments), nprocs=world, start_method="forkserver")


def refused(message, work):
    """Checks that `work` is refused; every process calls it."""
    with pytest.raises((ValueError, RuntimeError), match=message):
        work()
