from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("runs", "0007_reasons_of_deliveries")]

    operations = [
        migrations.AddField(
            model_name="export",
            name="passport",
            field=models.JSONField(default=dict, help_text="What made the weights; see training.spec.passport."),
        ),
        migrations.AddField(
            model_name="placement",
            name="facts",
            field=models.JSONField(blank=True, default=dict, help_text="Of its launch: {check, command, variables}."),
        ),
    ]
