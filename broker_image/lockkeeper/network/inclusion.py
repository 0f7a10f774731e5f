"""Choice of what a bridge forwards: destinations included, excluded, and asked about."""

from collections.abc import Iterable

from lockkeeper.broker.advisories.names import PREFIX, is_advisory
from lockkeeper.message.destination import (
    COMPOSITE_SEPARATOR,
    Destination,
    path_matches,
    topic,
)
from lockkeeper.network.settings import BridgeSettings, Included

CONSUMERS = PREFIX + "Consumer."
VIRTUAL_CONSUMERS = PREFIX + "VirtualDestination.Consumer."
TEMPORARY = (PREFIX + "TempQueue", PREFIX + "TempTopic")


def fits(pattern: Destination, destination: Destination) -> bool:
    """Tell whether *pattern* is of the same kind and stands for *destination*, a wildcard too."""
    return pattern.kind is destination.kind and path_matches(pattern.path, destination.path)


def first_fit(entries: Iterable[Included], destination: Destination) -> Included | None:
    """Return the first entry that stands for *destination*."""
    return next((each for each in entries if fits(each.destination, destination)), None)


def is_permitted(settings: BridgeSettings, destination: Destination) -> bool:
    """Tell whether messages of *destination* may be forwarded."""
    if destination.is_temporary:
        return settings.bridge_temp_destinations
    if first_fit(settings.excluded, destination) is not None:
        return False
    if first_fit(settings.statically_included, destination) is not None:
        return True
    dynamic = settings.dynamically_included
    return not dynamic or first_fit(dynamic, destination) is not None


def is_forced_durable(settings: BridgeSettings, destination: Destination) -> bool:
    """Tell whether a plain consumer of a topic is served by a durable subscription."""
    if not destination.is_topic or destination.is_temporary or is_advisory(destination):
        return False
    found = first_fit(settings.dynamically_included, destination)
    found = found or first_fit(settings.statically_included, destination)
    return found is not None and found.force_durable


def advisory_topics(settings: BridgeSettings) -> Destination:
    """Return what a bridge consumes at the other broker to hear of consumers there."""
    asked = settings.destination_filter
    if asked is not None:
        names = [asked if asked.startswith(CONSUMERS) else CONSUMERS + asked]
    else:
        included = [each.destination for each in settings.dynamically_included]
        about = [
            f"{'Queue' if each.is_queue else 'Topic'}.{each.name}"
            for each in included
            if not each.is_temporary
        ] or [">"]
        kinds = [CONSUMERS, *([VIRTUAL_CONSUMERS] if settings.use_virtual_dest_subs else [])]
        names = [kind + each for kind in kinds for each in about]
    if settings.bridge_temp_destinations:
        names += TEMPORARY
    return topic(COMPOSITE_SEPARATOR.join(names))
