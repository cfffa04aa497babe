"""Records of how pods ended, within the bounds of one object."""

from gpufence.records import (
    EVICTED,
    MOST_BYTES,
    MOST_MOMENTS,
    MOST_RECORDS,
    Moment,
    Neighbour,
    NodeRecords,
    Record,
    Threshold,
    bounded,
    read_records,
    together,
    write_records,
)

GIB = 2**30


def record(number: int = 0, namespace: str = "team-a", moments: int = 0) -> Record:
    """Build a record; the number is its time."""
    course = tuple(Moment(600 - 5 * age, 81_559, 81_559, 81_559) for age in range(moments))
    return Record(EVICTED, f"2026-01-02T00:{number:05}", "uid", namespace, "a", course=course)


def test_what_is_written_is_read() -> None:
    """Every field comes back, and what is unknown stays unknown."""
    whole = record()._replace(
        owner="Deployment/web",
        controller="ReplicaSet/web-7",
        card="GPU-0",
        index=3,
        model="Tesla T4",
        total_bytes=15 * GIB,
        peak_bytes=4 * GIB,
        limit_bytes=3 * GIB,
        shortage=True,
        over_seconds=12.5,
        owed_bytes=GIB,
        neighbours=(Neighbour(None, GIB),),
        thresholds=(Threshold("limit", 3 * GIB), Threshold("evict", 4 * GIB, 7.0)),
        course=(Moment(3, None, 3072, None), Moment(0, 4096, 3072, 1)),
        given_bytes=GIB,
        certain=True,
    )
    known = NodeRecords("n1", "2026-01-01T00:00:00Z", (whole, record()))

    assert known == read_records(write_records(known))


def test_two_agents_records_are_each_there_once() -> None:
    """What both know stands once, in the order of time."""
    assert (record(1), record(2), record(3)) == together(
        [record(3), record(1)], [record(2), record(1)]
    )


def test_no_more_is_kept_than_fits() -> None:
    """However many there are, an object has room for them, and the newest are there."""
    crowd = tuple(record(number, moments=MOST_MOMENTS) for number in range(2 * MOST_RECORDS))
    kept = bounded(NodeRecords("n1", records=crowd))

    assert MOST_BYTES >= len(write_records(kept)) > MOST_BYTES / 2
    assert crowd[-1] == kept.records[-1]
    assert MOST_RECORDS == len(bounded(NodeRecords("n1", records=_small(300))).records)


def test_one_namespace_pushes_out_no_other() -> None:
    """A tenant that is evicted all day leaves the only record of another one alone."""
    crowd = (record(0, "team-b"), *_small(300))

    assert "team-b" == bounded(NodeRecords("n1", records=crowd)).records[0].namespace


def _small(count: int) -> tuple[Record, ...]:
    return tuple(record(number + 1) for number in range(count))
