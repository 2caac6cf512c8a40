"""Samples that are rows are folded into blocks, and their points into chunks; back again, they are rows and points."""

from datetime import UTC, datetime, timedelta

from django.db import migrations

from webapp.runs.packing import MICRO, pack_points, pack_samples, unpack_samples
from webapp.runs.readings import readings

BLOCK = 60
AT_ONCE = 2000
START = datetime(1970, 1, 1, tzinfo=UTC)


def fold(apps, schema_editor):
    """The points over time go, all of them: each came from a sample, which is a row or in a block now."""
    of = rows_of(apps, schema_editor)
    samples = of('Event').filter(kind='sample')
    for attempt, source in samples.values_list('attempt_id', 'source').distinct().order_by('attempt_id', 'source'):
        rows = samples.filter(attempt_id=attempt, source=source).order_by('seq')
        for _ in range(max(0, rows.count() - BLOCK) // BLOCK):
            fold_block(of, list(rows[:BLOCK]))
    points = of('Point').filter(series__axis='time')
    points._raw_delete(points.db)


def fold_block(of, events):
    first, numbers = events[0], [event.number for event in events]
    body = pack_samples([packed(event) for event in events])
    of('SampleBlock').create(run_id=first.run_id, attempt_id=first.attempt_id, source=first.source,
                             first=min(numbers), last=max(numbers), count=len(events), body=body)  # fmt: skip
    columns = {}
    for event in events:
        for reading in readings(event):
            columns.setdefault(reading.name[:100], {})[reading.x] = reading.value
    series = dict(of('Series').filter(attempt_id=first.attempt_id, name__in=columns).values_list('name', 'pk'))
    for name in columns.keys() - series.keys():
        series[name] = of('Series').create(attempt_id=first.attempt_id, name=name, axis='time').pk
    chunks = []
    for name, column in columns.items():
        pairs = sorted(column.items())
        chunk = {'first': pairs[0][0], 'last': pairs[-1][0], 'count': len(pairs), 'body': pack_points(pairs)}
        chunks.append(of('Chunk').model(series_id=series[name], **chunk))
    of('Chunk').bulk_create(chunks)
    of('Event').filter(pk__in=[event.pk for event in events]).delete()


def packed(event):
    row = [event.number, event.seq, ticks(event.at), ticks(event.received_at), event.data]
    return row if event.step is None else [*row, 'sample', event.step]


def unfold(apps, schema_editor):
    of = rows_of(apps, schema_editor)
    events = of('Event')
    for block in of('SampleBlock').iterator(chunk_size=8):
        same = {'run_id': block.run_id, 'attempt_id': block.attempt_id, 'source': block.source, 'kind': 'sample'}
        events.bulk_create(
            events.model(number=number, seq=seq, at=time(at), received_at=time(received), data=data, step=step, **same)
            for number, seq, at, received, data, step in map(whole, unpack_samples(bytes(block.body)))
        )
    of('SampleBlock').all().delete()
    of('Chunk').filter(series__axis='time').delete()
    series = {(attempt, name): pk for attempt, name, pk in of('Series').values_list('attempt_id', 'name', 'pk')}
    points = {}
    for event in events.filter(kind='sample').order_by('attempt_id', 'source', 'seq').iterator(chunk_size=AT_ONCE):
        for reading in readings(event):
            points[series[event.attempt_id, reading.name[:100]], reading.x] = reading.value
        if len(points) > AT_ONCE:
            put_points(of, points)
    put_points(of, points)


def whole(row):
    """Return number, seq, two times, data and step: a sample that has none ends with its data."""
    return [*row[:5], row[6] if len(row) > 5 else None]


def put_points(of, points):
    of('Point').bulk_create(
        [point(of('Point').model, series, x, value) for (series, x), value in points.items()],
        update_conflicts=True, unique_fields=['series', 'x'], update_fields=['value', 'odd'],
    )  # fmt: skip
    points.clear()


def point(model, series, x, value):
    odd = 'NaN' if value != value else {float('inf'): 'Infinity', float('-inf'): '-Infinity'}.get(value, '')
    return model(series_id=series, x=x, value=None if odd else value, odd=odd)


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
        ('runs', '0019_packed_samples'),
    ]

    operations = [
        migrations.RunPython(fold, unfold),
    ]
