"""A small client of the GDB remote protocol, for the tests of the server."""

import socket


class GdbClient:
    """Talks to the server; packets are checked and acknowledged."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._bytes = b""

    def _byte(self) -> bytes:
        if not self._bytes:
            self._bytes = self.socket.recv(4096)
            if not self._bytes:
                raise EOFError
        first, self._bytes = self._bytes[:1], self._bytes[1:]
        return first

    def receive(self) -> str:
        while self._byte() != b"$":
            pass
        data = b""
        while (byte := self._byte()) != b"#":
            data += byte
        assert int(self._byte() + self._byte(), 16) == sum(data) & 0xFF
        self.socket.sendall(b"+")
        return data.decode("latin-1")

    def send(self, text: str | bytes) -> None:
        data = text.encode("latin-1") if isinstance(text, str) else text
        self.socket.sendall(b"$%s#%02x" % (data, sum(data) & 0xFF))

    def ask(self, text: str | bytes) -> str:
        self.send(text)
        return self.receive()

    def register(self, number: int) -> int:
        return int.from_bytes(bytes.fromhex(self.ask(f"p{number:x}")), "little")

    def close(self) -> None:
        self.socket.close()
