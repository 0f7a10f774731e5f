"""Run seeds: `run.py --seeds 0-199`, `run.py --replay 17 --verbose`, `run.py --shrink 17`.

With `--networks` they are of networks of brokers, with `--streams` of streams and groups on a
pair, otherwise of queues and topics on a pair.

Each seed runs in a process of its own, forked from one that has everything loaded and does
nothing else, so that a seed finds the same memory, and with it the same order of sets, whatever
ran before it. What fails is told with its seed and the commit, and can be replayed exactly.
"""

import argparse
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
MEMORY = Path("/dev/shm")
PREFIX = "simulation-"
SECONDS_MAX = 240
"""Of processor time: it is the same however much else a machine has to do."""
ORDER_BYTES = 4096
TOLD_EVERY = 20
_NO_RANDOM_ADDRESSES = 0x0040000


def one(seed: int, options: dict[str, Any], verbose: bool) -> dict[str, Any]:
    """Run one seed here and now; returns what came of it."""
    from simulation.course import Options
    from simulation.hub import SECOND
    from simulation.life import Life
    from simulation.network_life import NetworkLife
    from simulation.stream_life import StreamLife

    kinds: dict[str, type[Life | NetworkLife | StreamLife]] = {
        "networks": NetworkLife,
        "streams": StreamLife,
    }
    root = _place_of(os.getpid())
    # A run that was killed may have had the number, and left it.
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    began = time.perf_counter()
    life: Life | NetworkLife | StreamLife | None = None
    kind = kinds.get(options.get("world", ""), Life)
    try:
        life = kind(seed, root, Options.of(options))
        problems = life.run()
    except BaseException as error:
        problems = ["".join(traceback.format_exception(error))]
    result: dict[str, Any] = {"seed": seed, "problems": problems}
    if life is not None:
        result |= {
            "virtual_seconds": round(life.world.hub.now / SECOND, 3),
            "trace": life.world.hub.trace.hexdigest(),
            "planned": life.planned,
            "rounds": life.rounds,
            "counts": dict(life.books.counts),
            **life.told(),
        }
        if verbose:
            result["log"] = life.log
    shutil.rmtree(root, ignore_errors=True)
    return result | {
        "real_seconds": round(time.perf_counter() - began, 3),
        "processor_seconds": round(time.process_time(), 3),
    }


def _place_of(process: int) -> Path:
    """Return where a process has its files.

    The name is of the same length each time, like all that is allocated.
    """
    return (MEMORY if MEMORY.is_dir() else Path("/tmp")) / f"{PREFIX}{process:010d}"


def clear_leftovers() -> None:
    """Delete the files of runs that were killed, whose processes are gone: they take memory."""
    for place in _place_of(0).parent.glob(f"{PREFIX}*"):
        number = place.name.removeprefix(PREFIX)
        if number.isdigit() and not Path("/proc", str(int(number))).exists():
            shutil.rmtree(place, ignore_errors=True)


class Zygote:
    """A process that has loaded everything; it forks one child for each order and waits for it."""

    def __init__(self) -> None:
        orders, self._orders = os.pipe()
        self._results, results = os.pipe()
        if not os.fork():
            os.close(self._orders)
            os.close(self._results)
            _serve(orders, results)
        os.close(orders)
        os.close(results)

    def run(self, seed: int, verbose: bool = False, **options: Any) -> dict[str, Any]:
        """Return what came of a seed."""
        order = json.dumps({"seed": seed, "verbose": verbose, "options": options}).encode()
        os.write(self._orders, order.ljust(ORDER_BYTES))
        size = int.from_bytes(_read(self._results, 8), "big")
        if not size:
            return {"seed": seed, "problems": [f"it did not end in {SECONDS_MAX} s of work"]}
        return dict(json.loads(_read(self._results, size)))


def _read(descriptor: int, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = os.read(descriptor, size - len(data))
        if not piece:
            sys.exit("The process that forks one for each seed has ended: it says why above.")
        data += piece
    return data


def _serve(orders: int, results: int) -> None:
    import simulation.network_life
    import simulation.stream_life  # noqa: F401

    while os.fork():
        process, status = os.wait()
        if os.WIFSIGNALED(status):
            shutil.rmtree(_place_of(process), ignore_errors=True)
            os.write(results, bytes(8))
        elif os.waitstatus_to_exitcode(status):
            os._exit(0)
    order = os.read(orders, ORDER_BYTES)
    if not order:
        os._exit(1)
    signal.setitimer(signal.ITIMER_PROF, SECONDS_MAX)
    asked = json.loads(order)
    data = json.dumps(one(asked["seed"], asked["options"], asked["verbose"])).encode()
    data = len(data).to_bytes(8, "big") + data
    while data:
        data = data[os.write(results, data) :]
    os._exit(0)


def run_all(seeds: range, jobs: int, options: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the result of each seed, *jobs* at a time, in order."""
    zygotes = [Zygote() for _ in range(jobs)]
    with ThreadPoolExecutor(jobs) as pool:
        free = list(zygotes)

        def work(seed: int) -> dict[str, Any]:
            zygote = free.pop()
            try:
                return zygote.run(seed, **options)
            finally:
                free.append(zygote)

        yield from pool.map(work, seeds)


def shrink(zygote: Zygote, seed: int, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of the smallest failure found: fewer rounds, faults and actors."""
    whole = zygote.run(seed, **options)
    best: dict[str, Any] = dict(options)
    if not whole["problems"]:
        return best
    for rounds in range(1, whole["rounds"]):
        if zygote.run(seed, **{**best, "rounds": rounds})["problems"]:
            best["rounds"] = rounds
            break
    for number in range(whole["planned"]):
        skipped = [*best.get("skipped", []), number]
        if zygote.run(seed, **{**best, "skipped": skipped})["problems"]:
            best["skipped"] = skipped
    for name in whole["actors"]:
        silenced = [*best.get("silenced", []), name]
        if zygote.run(seed, **{**best, "silenced": silenced})["problems"]:
            best["silenced"] = silenced
    return best


def commit() -> str:
    """Return the commit that is tested."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    found = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


def shortened(problem: str) -> str:
    """Return the first line and the last few, where the cause is."""
    lines = problem.splitlines()
    return "\n".join([lines[0][:300], *(line[:160] for line in lines[1:][-6:])])


def tell(result: dict[str, Any]) -> None:
    """Print a failure."""
    print(f"seed {result['seed']} at {commit()}:")
    for fault in result.get("faults", []):
        print(f"  fault {fault}")
    for problem in result["problems"][:2]:
        print("  " + shortened(problem).replace("\n", "\n  "))
    sys.stdout.flush()


def settle_memory() -> None:
    """Begin anew with fixed addresses and hashes, so that sets have the same order each time."""
    if os.environ.get("PYTHONHASHSEED") == "0":
        return
    os.environ["PYTHONHASHSEED"] = "0"
    ctypes.CDLL(None).personality(_NO_RANDOM_ADDRESSES)
    os.execv(sys.executable, [sys.executable, *sys.argv])


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0-199", help="first and last")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--stop", action="store_true", help="stop at the first failure")
    parser.add_argument("--replay", type=int, metavar="SEED")
    parser.add_argument("--shrink", type=int, metavar="SEED")
    parser.add_argument("--options", default="{}", help="what --shrink has printed")
    parser.add_argument("--networks", action="store_const", dest="world", const="networks")
    parser.add_argument("--streams", action="store_const", dest="world", const="streams")
    parser.add_argument("--verbose", action="store_true", help="with the log of the brokers")
    parser.add_argument("--traces", action="store_true", help="print the digest of each run")
    arguments = parser.parse_args()
    settle_memory()
    sys.path.insert(0, str(HERE.parent))
    clear_leftovers()
    options = json.loads(arguments.options) | {"world": arguments.world or ""}
    if arguments.shrink is not None:
        print(json.dumps(shrink(Zygote(), arguments.shrink, options)))
        return 0
    if arguments.replay is not None:
        result = Zygote().run(arguments.replay, arguments.verbose, **options)
        print("\n".join(result.pop("log", [])))
        print(json.dumps(result, indent=1))
        return bool(result["problems"])
    return _run_seeds(arguments, options)


def _run_seeds(arguments: argparse.Namespace, options: dict[str, Any]) -> int:
    first, last = map(int, arguments.seeds.split("-"))
    passed = failed = 0
    virtual, processor, began = 0.0, 0.0, time.monotonic()
    for result in run_all(range(first, last + 1), arguments.jobs, options):
        virtual += result.get("virtual_seconds", 0)
        processor += result.get("processor_seconds", 0)
        if arguments.traces:
            print(result["seed"], result.get("trace"))
        if (passed + failed + 1) % TOLD_EVERY == 0:
            minutes = (time.monotonic() - began) / 60
            told = f"{passed + failed + 1} seeds in {minutes:.1f} min, {failed} failed before"
            print(told, file=sys.stderr, flush=True)
        if not result["problems"]:
            passed += 1
            continue
        failed += 1
        tell(result)
        if arguments.stop:
            break
    real = (time.monotonic() - began) / 60
    hours = virtual / 3600
    told = f"{passed} seeds passed, {failed} failed: {hours:.2f} virtual hours"
    print(f"{told} in {real:.1f} min, {processor:.1f} s of processor time")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
