from .token import Token

__all__ = ["Token"]
