"""Add a base model: a folder that every node can read, or a hub id."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from webapp.looks import Looks
from webapp.people import staff_only

from ..models import ModelSource


class ModelForm(Looks, forms.ModelForm):
    class Meta:
        model = ModelSource
        fields = ["name", "location", "revision"]
        help_texts = {"location": "An absolute folder that every node can read, or a hub id such as org/model."}


@staff_only("add models", "runs:new")
def add(request: HttpRequest) -> HttpResponse:
    form = ModelForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        made = form.save()
        messages.success(request, f"The model {made.name} can be chosen now.")
        return redirect("runs:new")
    return render(request, "runs/add_model.html", {"form": form})
