"""Malformed HTTP framing, as pieces to send: wrong content lengths, invalid chunks, and heads that never end."""


def cut_off(head, body):
    """The server may wait for the rest of these."""
    return (
        (head + b"Content-Length: %d\r\n\r\n" % (len(body) + 10), body),
        (head + b"Transfer-Encoding: chunked\r\n\r\n", b"%x\r\n" % len(body), body),
        (head + b"Content-Length: 4000000\r\n\r\n", body),
        (head,),
        (head[:-1],),
        (head[:1],),
    )


def broken(head, body):
    """A server that has read these can respond, or close the connection."""
    chunked = head + b"Transfer-Encoding: chunked\r\n\r\n"
    return (
        (head + b"Content-Length: %d\r\n\r\n" % (len(body) // 2), body),
        (head + b"Content-Length: -1\r\n\r\n", body),
        (head + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", body),
        (head + b"Content-Length: 99999999999999999999\r\n\r\n", body),
        (head + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", b"0\r\n\r\n", body),
        (chunked, b"%x\r\n" % len(body), body, b"\r\n0\r\n\r\n"),
        (chunked, b"zz\r\n", body),
        (chunked, b"ffffffffffffffffff\r\n", body),
        (chunked, *(b"1\r\n%c\r\n" % byte for byte in body[:200]), b"0\r\n\r\n"),
        (head + b"Transfer-Encoding: gzip\r\n\r\n", body),
        (head + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body), body),
        (*(bytes((byte,)) for byte in head[:300]), head[300:] + b"\r\n"),
        (head.replace(b"\r\n", b"\n") + b"\n",),
        (head + b"A" * 3_000_000,),
        (head + b" folded\r\n\r\n",),
        (head + b"No-Colon\r\n\r\n",),
        (head + b"Content-Length: 0\r\n\r\n" + head + b"\r\n" + head,),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n",),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",),
        (head.replace(b"HTTP/1.1", b"HTTP/9.9") + b"\r\n",),
        (head.replace(b"HTTP/1.1", b"HTTP/1.0") + b"\r\n",),
        (b"\r\n" * 5_000 + head + b"\r\n",),
    )
