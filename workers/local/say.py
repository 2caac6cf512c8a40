"""How the launcher speaks: one line at a time, at once."""


def say(line: str) -> None:
    print(f"==> {line}", flush=True)
