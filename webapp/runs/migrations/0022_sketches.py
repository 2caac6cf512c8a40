"""Runs that have a loss get their sketch, so that lists sort and draw them as they do those to come."""

import math

from django.db import migrations

from webapp.runs.sketching import Drawn, drawn_on

AT_ONCE = 2000


def sketch(apps, schema_editor):
    series = apps.get_model('runs', 'Series').objects.using(schema_editor.connection.alias)
    rows = series.filter(name='loss', axis='step').order_by('attempt__run', 'attempt__number')
    found = {}
    for pk, run, number, resumed in rows.values_list(
        'pk', 'attempt__run', 'attempt__number', 'attempt__resume_from__step'
    ):
        after = -math.inf if resumed is None else float(resumed)
        found[run] = drawn_on(found.get(run, Drawn()), number, after, points(apps, schema_editor, pk))
    sketches = apps.get_model('runs', 'Sketch').objects.using(schema_editor.connection.alias)
    made = [row(sketches.model, run, drawn) for run, drawn in found.items() if drawn.attempt]
    sketches.bulk_create(made, batch_size=AT_ONCE)


def points(apps, schema_editor, series):
    rows = apps.get_model('runs', 'Point').objects.using(schema_editor.connection.alias).filter(series=series)
    return {x: float(odd or value) for x, value, odd in rows.values_list('x', 'value', 'odd').iterator(AT_ONCE)}


def row(model, run, drawn):
    odd = drawn.last if isinstance(drawn.last, str) else ''
    return model(run_id=run, attempt=drawn.attempt, step=drawn.step, last=None if odd else drawn.last, odd=odd,
                 stride=drawn.stride, curve=drawn.curve)  # fmt: skip


class Migration(migrations.Migration):
    dependencies = [('runs', '0021_lists')]
    operations = [migrations.RunPython(sketch, migrations.RunPython.noop)]
