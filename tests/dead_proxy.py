"""An environment whose every proxy leads nowhere."""

DEAD_PROXY = {
    **dict.fromkeys(("http_proxy", "https_proxy", "HTTPS_PROXY"), "http://127.0.0.1:9"),
    **dict.fromkeys(("all_proxy", "ALL_PROXY"), "socks5://user:secret@127.0.0.1:9"),
    **dict.fromkeys(("no_proxy", "NO_PROXY"), ""),
}
"""What reaches a host with it has asked no proxy."""
