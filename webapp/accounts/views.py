"""API tokens: listed, made (the secret is shown once), revoked. A person sees and changes only their own."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from webapp.people import person

from .forms import TokenForm
from .models import Token


@never_cache
def tokens(request: HttpRequest) -> HttpResponse:
    form = TokenForm(request.POST or None)
    made, secret = None, ""
    if request.method == "POST" and form.is_valid():
        made, secret = Token.issue(
            person(request), form.cleaned_data["name"], form.cleaned_data["scope"], form.expires_at()
        )
        form = TokenForm()
    listed = Token.objects.filter(user=person(request))
    context = {"form": form, "tokens": listed, "made": made, "secret": secret, "now": timezone.now()}
    return render(request, "accounts/tokens.html", context)


@require_POST
def revoke(request: HttpRequest, token_id: int) -> HttpResponse:
    token = get_object_or_404(Token, pk=token_id, user=person(request))
    if token.revoked_at is None:
        token.revoked_at = timezone.now()
        token.save(update_fields=["revoked_at"])
        messages.success(request, f"The token {token.name} is revoked: requests with it are refused from now on.")
    return redirect("accounts:tokens")
