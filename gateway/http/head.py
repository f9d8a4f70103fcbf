"""HEAD is answered wherever GET is: the same status and headers, and no body."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class HeadAnswers:
    """Asks for what HEAD asks for with GET, and ends the answer where it begins."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; an answer without an end, as of events, ends too."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        is_over = False

        async def send_head(message: Message) -> None:
            nonlocal is_over
            if is_over:
                return
            if message["type"] == "http.response.body":
                is_over = True
                message = {"type": "http.response.body", "body": b""}
            await send(message)

        await self._app({**scope, "method": "GET"}, receive, send_head)
