"""Pages are created on first use, cached, and created again when they are outdated."""

from mockube.apiserver.request.pages import RenewedPages


def test_pages_are_created_on_first_use_and_cached():
    made = []

    def make():
        made.append(object())
        return {"/apis": made[-1]}

    pages = RenewedPages(make)
    assert made == []
    first = pages.get("/apis")
    assert (pages.get("/apis"), pages.get("/other"), [*pages], len(pages)) == (first, None, ["/apis"], 1)
    assert len(made) == 1
    pages.invalidate()
    assert pages.get("/apis") is not first
