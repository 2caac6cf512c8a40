"""A run that held a node held all of it. Apart from the change of the table, which PostgreSQL would refuse beside it."""

from django.db import migrations


def spread(apps, schema_editor):
    Claim = apps.get_model("fleet", "Claim")
    for claim in Claim.objects.filter(gpu=0).select_related("node"):
        Claim.objects.bulk_create(
            Claim(node=claim.node, gpu=gpu, attempt_id=claim.attempt_id, since=claim.since)
            for gpu in range(1, claim.node.processes)
        )


def gather(apps, schema_editor):
    """One claim a node, as before: of several runs on it the first keeps it."""
    Claim = apps.get_model("fleet", "Claim")
    kept = {}
    for pk, node in Claim.objects.order_by("node", "gpu").values_list("pk", "node"):
        kept.setdefault(node, pk)
    Claim.objects.exclude(pk__in=kept.values()).delete()


class Migration(migrations.Migration):
    dependencies = [("fleet", "0008_claim_per_gpu")]

    operations = [migrations.RunPython(spread, gather)]
