"""Metrics that are rows are folded into blocks and their points into chunks, with levels; back again, rows and points."""

from datetime import UTC, datetime, timedelta

from django.db import migrations

from webapp.runs.packing import MICRO, Column, pack_points, pack_samples, unpack_points, unpack_samples
from webapp.runs.readings import AT, readings
from webapp.runs.thinning import joined
from webapp.runs.tower import tower

BLOCK = 60
AT_ONCE = 2000
LOOSE = 16
START = datetime(1970, 1, 1, tzinfo=UTC)
KINDS = ['metrics', 'evaluation']
ODD = {'NaN': float('nan'), 'Infinity': float('inf'), '-Infinity': float('-inf')}


def fold(apps, schema_editor):
    of = rows_of(apps, schema_editor)
    folded = {attempt for attempt, source in sources(of) if fold_source(of, attempt, source)}
    for series in of('Series').filter(axis='step').exclude(name=AT).iterator(chunk_size=AT_ONCE):
        rows = of('Point').filter(series_id=series.pk).order_by('x').values_list('x', 'value', 'odd')
        column = Column.of((x, ODD[odd] if odd else value) for x, value, odd in rows.iterator(chunk_size=AT_ONCE))
        if len(column.xs):
            series.last_x, series.last_value, series.last_odd = rows.last()
            series.save(update_fields=['last_x', 'last_value', 'last_odd'])
        if series.attempt_id in folded and len(column.xs):
            put_chunks(of, series.pk, column)
    merge_samples(of)


def sources(of):
    lines = of('Event').filter(kind__in=KINDS).order_by('attempt_id', 'source')
    return list(lines.values_list('attempt_id', 'source').distinct())


def fold_source(of, attempt, source):
    """Return whether there were lines enough; of each step's line the time becomes a point."""
    lines = of('Event').filter(attempt_id=attempt, source=source, kind__in=KINDS).order_by('seq')
    times = {}
    for line in lines.filter(kind='metrics', step__isnull=False).values_list('step', 'at').iterator(chunk_size=AT_ONCE):
        times[float(line[0])] = ticks(line[1]) / MICRO
    blocks = max(0, lines.count() - BLOCK) // BLOCK
    for _ in range(blocks):
        fold_block(of, list(lines[:BLOCK]))
    if times:
        put_times(of, attempt, sorted(times.items()), chunks=blocks > 0)
    return blocks > 0


def put_times(of, attempt, points, chunks):
    series, _ = of('Series').get_or_create(attempt_id=attempt, name=AT, defaults={'axis': 'step'})
    series.last_x, series.last_value = points[-1]
    series.save(update_fields=['last_x', 'last_value'])
    if chunks:
        put_chunks(of, series.pk, Column.of(points))


def fold_block(of, events):
    first, numbers = events[0], [event.number for event in events]
    body = pack_samples([[e.number, e.seq, ticks(e.at), ticks(e.received_at), e.data, e.kind, e.step] for e in events])
    of('SampleBlock').create(run_id=first.run_id, attempt_id=first.attempt_id, source=first.source,
                             first=min(numbers), last=max(numbers), count=len(events), body=body)  # fmt: skip
    of('Event').filter(pk__in=[event.pk for event in events]).delete()


def merge_samples(of):
    """What was folded before there were levels lies loose, however much it is."""
    chunks = of('Chunk').filter(series__axis='time', level=0)
    for series in chunks.values_list('series_id', flat=True).distinct().order_by('series_id'):
        held = list(of('Chunk').filter(series_id=series).order_by('pk'))
        if len(held) >= LOOSE:
            of('Chunk').filter(pk__in=[chunk.pk for chunk in held]).delete()
            put_chunks(of, series, joined([unpack_points(bytes(chunk.body)) for chunk in held]))


def put_chunks(of, series, column):
    chunk = of('Chunk').model
    of('Chunk').bulk_create(
        [
            chunk(series_id=series, level=level, loose=loose, first=float(part.xs[0]), last=float(part.xs[-1]),
                  count=len(part.xs), body=pack_points(part))
            for level, loose, part in tower(column)
        ],
        batch_size=AT_ONCE,
    )  # fmt: skip


def unfold(apps, schema_editor):
    of = rows_of(apps, schema_editor)
    for block in of('SampleBlock').iterator(chunk_size=8):
        unfold_block(of, block)
    of('Chunk').filter(series__axis='step').delete()
    of('Chunk').filter(level__gt=0).delete()
    of('Series').filter(name=AT, axis='step').delete()
    series = {(attempt, name): pk for attempt, name, pk in of('Series').values_list('attempt_id', 'name', 'pk')}
    points = {}
    for event in of('Event').filter(kind__in=KINDS).order_by('number').iterator(chunk_size=AT_ONCE):
        for reading in readings(event):
            if reading.name != AT:
                points[series[event.attempt_id, reading.name[:100]], reading.x] = reading.value
        if len(points) > AT_ONCE:
            put_points(of, points)
    put_points(of, points)


def unfold_block(of, block):
    """A block becomes rows where it has more in it than samples without a step, which are as they were before."""
    event = of('Event').model
    same = {'run_id': block.run_id, 'attempt_id': block.attempt_id, 'source': block.source}
    rows = unpack_samples(bytes(block.body))
    if all(len(row) == 5 for row in rows):
        return
    whole = (row if len(row) > 5 else [*row, 'sample', None] for row in rows)
    of('Event').bulk_create(
        event(number=number, seq=seq, at=time(at), received_at=time(received), data=data, kind=kind, step=step, **same)
        for number, seq, at, received, data, kind, step in whole
    )
    block.delete()


def put_points(of, points):
    point = of('Point').model
    rows = []
    for (series, x), value in points.items():
        odd = 'NaN' if value != value else {float('inf'): 'Infinity', float('-inf'): '-Infinity'}.get(value, '')
        rows.append(point(series_id=series, x=x, value=None if odd else value, odd=odd))
    of('Point').bulk_create(
        rows, update_conflicts=True, unique_fields=['series', 'x'], update_fields=['value', 'odd'],
    )  # fmt: skip
    points.clear()


def rows_of(apps, schema_editor):
    alias = schema_editor.connection.alias
    return lambda name: apps.get_model('runs', name)._base_manager.using(alias)


def ticks(time):
    since = time - START
    return (since.days * 86400 + since.seconds) * MICRO + since.microseconds


def time(ticks):
    return START + timedelta(microseconds=ticks)


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0023_levels'),
    ]

    operations = [
        migrations.RunPython(fold, unfold),
    ]
