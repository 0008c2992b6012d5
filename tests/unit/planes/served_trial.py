"""A trial whose models answer with its id."""


class ServedTrial:
    def __init__(self, context):
        self.context = context

    async def serve_model(self, exchange, provider, path):
        await exchange.respond(200, body=self.context.trial.id.encode())

    def close(self):
        pass
