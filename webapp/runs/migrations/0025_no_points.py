from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0024_fold_metrics'),
    ]

    operations = [
        migrations.DeleteModel(
            name='Point',
        ),
    ]
