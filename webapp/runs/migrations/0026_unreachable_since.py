from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0025_no_points'),
    ]

    operations = [
        migrations.AddField(
            model_name='attempt',
            name='unreachable_since',
            field=models.DateTimeField(blank=True, help_text="When its launch first met a node that can't be reached, and none since could.", null=True),
        ),
    ]
