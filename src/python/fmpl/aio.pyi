"""Requests in asyncio."""

from . import Received, Request

async def wait(request: Request) -> Received | None: ...
