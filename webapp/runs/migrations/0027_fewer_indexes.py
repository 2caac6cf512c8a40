import django.db.models.deletion
from django.db import migrations, models


def without_index(model, name, to, related):
    field = models.ForeignKey(
        db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name=related, to=f'runs.{to}'
    )
    return migrations.AlterField(model_name=model, name=name, field=field)


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0026_unreachable_since'),
    ]

    operations = [
        without_index('event', 'run', 'run', 'events'),
        without_index('event', 'attempt', 'attempt', 'events'),
        without_index('sampleblock', 'run', 'run', 'sample_blocks'),
        without_index('sampleblock', 'attempt', 'attempt', 'sample_blocks'),
    ]
