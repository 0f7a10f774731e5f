"""What holds for all tests: messages go from state to state as their table says; no deadlines."""

import faulthandler
import re
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key
from hypothesis import settings

from lockkeeper import speedups
from lockkeeper.states import WrongStateError
from lockkeeper.store.base import MESSAGE_STATES, Reference, State

# How long an example takes says more of the machine than of what it tries.
settings.register_profile("lockkeeper", deadline=None)
settings.load_profile("lockkeeper")


TEARDOWN_SECONDS_MAX = 120.0
REPLACES = pytest.mark.skip(
    reason="compiled modules call each other: nothing can be put in between"
)
THOROUGH = re.compile(
    # ActiveMQ alone is what ours is held against: it changes with its version.
    r"interop/network/.*(activemq-dials-activemq|activemq-activemq-activemq)"
    r"|interop/test_java_(client|configured|security)\.py.*\[activemq"
    # What our client says hardly depends on the broker.
    r"|client/test_java_acks\.py.*\[activemq"
    # Both faces are the same core's (ADR 0023), and ours is tried with both.
    r"|client/.*\[activemq-blocking"
    # These are about the client alone, which ours sees in every way.
    r"|client/test_cuts\.py.*\[activemq-.*-[12]\]"
    r"|client/test_documented_client\.py.*\[activemq"
    r"|client/test_closing_within\.py.*\[activemq-.*(-function\]|-stop_in_)"
    r"|client/test_listener_again\.py.*\[activemq-.*(INDIVIDUAL|\.CONNECTION|\.SESSION)"
    r"|client/test_listener_container\.py.*processed_once\[activemq-.*-function"
    r"|client/test_listener_container\.py.*retry_holds.*\[activemq-.*INDIVIDUAL"
    # Each broker is once the one that is killed, and once the one that goes on.
    r"|interop/test_(directory_exchange|durable_wildcards)\.py"
    r".*\[(activemq-lockkeeper-stop|lockkeeper-activemq-kill)"
    # Chance decides: one is enough for each change.
    r"|interop/test_compacted_directory\.py.*\[2\]"
    r"|interop/test_simulated_directories\.py.*\[20001\]"
    # Duplex bridges of both have these scenarios, too.
    r"|network/test_bridges.*(ours-dials-activemq|activemq-dials-ours)\]"
    r"|network/test_bridges.*the_other_way.shared_by_both"
    # Two of ours tell all of a bridge in one direction, and of a duplex one what it changes. With
    # ActiveMQ both directions are held where ours dials; being dialled changes as little.
    r"|network/test_bridges\.py::test_(bridge|the_other_way)\["
    r"(?!queue_keeps_headers|topic_to_all|durable_sub|temporary_queue|request_and|bridge_is_told)"
    r"\w+-(ours|activemq)-dials-ours-duplex"
    r"|network/test_bridges\.py::test_java_clients.*activemq-dials-ours"
    r"|network/test_secured\.py.*\[activemq-simple"
    r"|network/test_cuts.*kills.*(ours-dials-activemq|activemq-dials-ours)"
    r"|network/test_chains.*(ours-activemq-ours|activemq-ours-activemq)"
    # The bench measures others, too: its tests need one load of each broker and of each client.
    r"|bench/test_rabbitmq\.py.*carries\[[cefgjo]\]"
    r"|bench/test_loads\.py.*\[activemq\]"
    r"|bench/test_clients\.py.*\[lockkeeper\]"
    # Kills of every broker by every way: one is enough for each change.
    r"|integrations/test_celery_chaos.*(activemq|early|failover)"
    r"|integrations/test_(celery|kombu_suite)\.py.*activemq"
    # Of random ones some are tried with each change.
    r"|test_cleaned_journals\.py.*\[[2-5]\d\]"
    r"|test_tables_defined\.py.*what_a_replay_in_order_tells\[[1-3]\]"
    r"|simulation/test_simulation\.py.*\[more_"
    r"|test_packed_backlogs\.py.*\[[1-9]\]"
    # A master is stopped before each of its calls: one way to lose the directory is enough.
    r"|crash/test_superseded_writer\.py.*\[(deadline-False|lock-True)\]"
    # Of loads that differ in the size of messages, those that once were too heavy.
    r"|load/test_memory\.py.*\[(100|60000|100-1Gi|1000-8Mi)\]"
    # What waits for a broker that does not answer waits a minute, whatever is to be deleted.
    r"|apiserver/test_destinations\.py.*\[broker_unreachable-DeleteIfEmpty\]"
    # The clients of failover lists are one core's: what it decides is tried with one face.
    r"|client/test_(failover|priority)\.py.*blocking\]"
    # Each column of one journal of ActiveMQ is a query; other versions' have the same tables.
    r"|test_tables_golden\.py.*each_column.*(clean|6\.1\.7)"
    # Both journals have each kind of narrowing; with all of them at once one is enough.
    r"|test_reports_narrowed\.py.*in_sql.*\[(ActiveMQ's-(since|absent)|ours-destination)\]"
    # A page of its own for each name: the others are tried by what writes texts into pages.
    r"|test_page_browser\.py.*names_are_texts.*\[(name1|\\xdc)"
    # A page is narrow in any colours, and has the same colours without its script.
    r"|test_page_access\.py.*axe.*\[bare_page-(dark|narrow)\]"
    # What is deleted while nobody looks is carried out as it is while somebody does.
    r"|apiserver/test_destinations\.py.*was_down.*\[(False-DeleteIfEmpty|True-Retain)\]"
    r"|apiserver/test_destinations\.py.*never_stuck\[(hibernated|namespace_ends)-DeleteIfEmpty\]"
    # Schedules differ in one child, which each kind of engine has alike.
    r"|apiserver/test_spark_manifests\.py.*(native|local) by schedule"
    # `make scale` runs it with many more Brokers.
    r"|apiserver/test_scale\.py"
    # Of random traffic one life, as of other random ones.
    r"|store/test_kahadb_compaction\.py.*mixed_traffic\[[1-3]\]"
    # Before the first frame of a peer less is read than after it.
    r"|test_no_frame_of_a_stranger_takes_long.False-"
)
"""Tests by their names, which `make thorough` runs and `make test` does not."""
THOROUGH_WITH_SPARK = re.compile(
    # DuckDB runs the same SQL texts (ADR 0021) and has these cases in `make test`. There Spark
    # makes a table and every report of one journal, a job, a stream and a page.
    r"analytics/test_(agreements|beginnings|bodies|collected|far_times|files_of_now|history"
    r"|line_breaks|object_store|pins|pushdown|reports_narrowed|spark_frames)\.py"
    r"|analytics/test_report_sql\.py.*\[ActiveMQ's"
    r"|analytics/test_report_sql\.py.*\[plain ones-(?!.*-(rates|totals|latency|backlog|poison)\])"
    r"|analytics/test_tables_defined\.py.*\[(?!messages)"
    r"|analytics/test_session\.py.*(planned_once|several_threads)"
    r"|analytics/test_stream\.py.*a_restart\[True\]"
    # Jupyter's kernel and the broker of the demo's notebook, for a minute.
    r"|analytics/test_notebook\.py"
)
"""Tests that need Spark, of the same kind: most of what they take is planning."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what takes long, and what replaces parts of compiled modules, where those run."""
    for item in items:
        by_spark = item.get_closest_marker("spark") and THOROUGH_WITH_SPARK.search(item.nodeid)
        if by_spark or THOROUGH.search(item.nodeid):
            item.add_marker(pytest.mark.thorough)
    if speedups.running.finder is None:
        return
    for item in items:
        if item.get_closest_marker("replaces"):
            item.add_marker(REPLACES)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """Tell where all threads are, and end the process, where what a test leaves does not end.

    pytest-timeout watches no test that has failed; the next worker of pytest-xdist goes on.
    """
    stderr = item.config.stash[fault_handler_stderr_fd_key]
    faulthandler.dump_traceback_later(TEARDOWN_SECONDS_MAX, exit=True, file=stderr)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


class CheckedState:
    """Stands for the slot `Reference.state`, and refuses what is not in MESSAGE_STATES."""

    def __init__(self, slot: Any) -> None:
        self.slot = slot

    def __get__(self, reference: Reference | None, owner: type) -> Any:
        return self if reference is None else self.slot.__get__(reference, owner)

    def __set__(self, reference: Reference, state: State) -> None:
        try:
            before = self.slot.__get__(reference, Reference)
        except AttributeError:
            pass  # It begins here.
        else:
            if not MESSAGE_STATES.leads(before, state):
                raise WrongStateError(f"a message goes from {before!r} to {state!r}")
        self.slot.__set__(reference, state)


@pytest.fixture(scope="session", autouse=True)
def _checked_states() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Reference, "state", CheckedState(vars(Reference)["state"]))
        yield
