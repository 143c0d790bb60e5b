"""Draw a map of memories by their meaning."""

from __future__ import annotations

from byheart.contracts import Storage
from byheart.errors import Do, Hint
from byheart.model import Filter, MapRegion, SpaceMap
from byheart.search.map_layout import divide, find_terms, lay_out
from byheart.startup.late_numpy import np
from byheart.system import clock

_DIGITS = 4


def draw_map(storage: Storage, where: Filter, limit: int) -> SpaceMap:
    """Lay out the memories that a filter leaves, at most so many."""
    with storage.searching(where.space) as reader:
        centers = reader.index.mean_vectors(where, limit)
        texts = reader.summaries(centers.memory_nos.tolist())
        pending = reader.index.state(
            where.space, where.session_id, include_global=where.include_global
        ).pending_vectors
    places = lay_out(centers.vectors).round(_DIGITS)
    region = divide(places) if len(places) else np.empty(0, np.int64)
    terms = find_terms((each.summary for each in texts), region.tolist())
    regions = []
    for number, telling in enumerate(terms):
        x, y = np.median(places[region == number], axis=0).round(_DIGITS).tolist()
        size = int(np.count_nonzero(region == number))
        regions.append(MapRegion(number, x, y, size, tuple(telling)))
    return SpaceMap(
        memory_ids=tuple(each.text_id for each in texts),
        x=tuple(places[:, 0].tolist()),
        y=tuple(places[:, 1].tolist()),
        kind=tuple(centers.kind.tolist()),
        kinds=centers.kinds,
        region=tuple(region.tolist()),
        regions=tuple(regions),
        total=centers.total,
        made_at=clock.now(),
        degraded=Hint(
            f"{pending:,} chunks have no vectors yet and are not on the map: make them with: ",
            Do("admin.doctor", fix=True),
        )
        if pending
        else None,
    )
