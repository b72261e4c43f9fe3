"""In how many rounds the secrets of sessions are hashed."""

from jupyterhub.orm import new_token
from jupyterhub.utils import compare_token, hash_token

from dsportal.hub.patches.client_secrets import hashed


def rounds(kept: str) -> int:
    return int(kept.split(":")[1])


def test_a_token_of_jupyterhubs_own_is_hashed_once_and_still_found() -> None:
    secret = new_token()
    kept = hashed(secret)
    assert rounds(kept) == 1
    assert compare_token(kept, secret)
    assert not compare_token(kept, new_token())
    # What is kept from before is still believed.
    assert compare_token(hash_token(secret), secret)


def test_what_somebody_has_thought_up_is_hashed_as_ever() -> None:
    for secret in ("a short secret", "correct horse battery staple, and a good deal more"):
        assert rounds(hashed(secret)) == rounds(hash_token(secret)) > 1000
