"""What the model server writes: texts and answers, whole or while they are written."""

import asyncio
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress

from answers import DONE, AnswerForm, ChatForm, ModelAnswer, TextForm, event
from completions import Delivery, WrittenText, chat_request, text_request
from model_handlers import ModelHandler, told
from text_model import TextModel, Writing
from tornado import iostream


class WritingHandler(ModelHandler):
    """What both kinds of completions have in common."""

    writings: Sequence[Writing] = ()
    has_left = False

    def on_connection_close(self) -> None:
        """Write nothing more for somebody who has left."""
        self.has_left = True
        for writing in self.writings:
            writing.is_wanted = False

    async def write_all(
        self, form: AnswerForm, delivery: Delivery, writings: Sequence[Writing]
    ) -> None:
        """Have the texts written, and send them."""
        if self.has_left:
            return
        self.writings = writings
        number = f"{form.prefix}-{uuid.uuid4().hex}"
        answer = ModelAnswer(form, number, int(time.time()), self.served.name)
        with suppress(iostream.StreamClosedError):
            if delivery.is_streamed:
                await self._send_parts(answer, delivery)
            else:
                texts = await asyncio.gather(*map(self.served.write, writings))
                await self.finish(answer.whole(texts))

    async def _send_parts(self, answer: ModelAnswer, delivery: Delivery) -> None:
        """Send each part when it is written."""
        self.set_header("Content-Type", "text/event-stream; charset=UTF-8")
        parts: asyncio.Queue[bytes | None] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        async def written(index: int, writing: Writing) -> WrittenText:
            def tell(part: str) -> None:
                loop.call_soon_threadsafe(parts.put_nowait, answer.part(index, part))

            writing.told = tell
            parts.put_nowait(answer.first(index))
            text = await self.served.write(writing)
            parts.put_nowait(answer.end(index, text))
            return text

        async def write_all() -> None:
            try:
                writing = [written(index, one) for index, one in enumerate(self.writings)]
                texts = await asyncio.gather(*writing)
                parts.put_nowait(answer.usage(texts) if delivery.has_usage else b"")
                parts.put_nowait(DONE)
            except Exception as raised:  # noqa: BLE001  # the answer has begun: it is told in it
                self.log_exception(type(raised), raised, raised.__traceback__)
                parts.put_nowait(event(told(raised, "Internal Server Error")))
            finally:
                parts.put_nowait(None)

        writing = asyncio.create_task(write_all())
        try:
            while (part := await parts.get()) is not None:
                self.write(part)
                await self.flush()
        finally:
            self.on_connection_close()
            await writing


class CompletionsHandler(WritingHandler):
    """``/v1/completions``: texts are continued."""

    async def post(self) -> None:
        """Continue one text, or several together."""
        asked = text_request(self.body())
        self.served.ready(TextModel)
        asked.delivery.check(self.served.name)
        writings = await self.served.prepared(
            lambda model: [model.to_continue(one, asked.sampling) for one in asked.prompts]
        )
        await self.write_all(TextForm(), asked.delivery, writings)


class ChatHandler(WritingHandler):
    """``/v1/chat/completions``: a conversation is continued."""

    async def post(self) -> None:
        """Give the next message."""
        asked = chat_request(self.body())
        self.served.ready(TextModel)
        asked.delivery.check(self.served.name)
        writings = await self.served.prepared(
            lambda model: [model.to_answer(asked.messages, asked.sampling)]
        )
        await self.write_all(ChatForm(), asked.delivery, writings)
