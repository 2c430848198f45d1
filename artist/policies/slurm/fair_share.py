"""Fair Tree: users who have used least of their share come first.

Source: slurm.conf(5) and fair_tree of Slurm 22.05. Usage is seconds x billed resources. It decays
by `1 - 0.693 / half-life` a second, at every PriorityCalcPeriod:

    level fair share = (shares / shares of all siblings) / (usage / usage of the account above)

Accounts and users are visited depth first, the largest level fair share first, and users before
accounts with the same one. Of n users the first gets factor 1, and each next user 1/n less. Users
that tie get the same factor. Accounts that tie are not merged, although the documentation says so:
22.05 looks for the next account, and stops at it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from artist.slurm.facts import Account

_LN2 = 0.693
"""Slurm's constant for ln 2. Slurm also takes the decay of a second only to first order."""

ROOT = "root"


class UsageState(NamedTuple):
    """Usage and factors at a moment; usage is known until `applied_s`, in Unix seconds."""

    accounts: Mapping[str, float]
    users: Mapping[tuple[str, str], float]
    factors: Mapping[tuple[str, str], float]
    applied_s: int | None


class Association:
    """An account, or a user in an account."""

    __slots__ = ("children", "is_user", "level_fs", "name", "parent", "shares", "usage")

    def __init__(
        self, name: str, shares: int | str, parent: Association | None, *, is_user: bool
    ) -> None:
        self.name, self.shares, self.parent, self.is_user = name, shares, parent, is_user
        self.children: list[Association] = []
        self.usage = 0.0
        self.level_fs = 0.0
        if parent is not None:
            parent.children.append(self)


class FairShare:
    """The usage of all associations, and the factors of users."""

    def __init__(self, accounts: Sequence[Account], half_life_s: int) -> None:
        self._decay = 1 - _LN2 / half_life_s if half_life_s else 1.0
        self.root = Association(ROOT, 1, None, is_user=False)
        self._accounts = {ROOT: self.root}
        self.users: dict[tuple[str, str], Association] = {}
        by_name = {account.name: account for account in accounts}
        for account in accounts:
            self._account(account, by_name, ())
            for user, shares in account.users.items():
                self._user(account.name, user, shares)
        self.factors: dict[tuple[str, str], float] = {}
        self._applied_s: int | None = None

    def _account(
        self, account: Account, by_name: dict[str, Account], inside: tuple[str, ...]
    ) -> Association:
        """The association of an account; it and those above it are made if they are missing.

        An account that is above itself (`inside`), or below an unknown one, is put below the root.
        """
        found = self._accounts.get(account.name)
        if found is None:
            above = by_name.get(account.parent or ROOT)
            if above is None or above.name in (ROOT, *inside):
                parent = self.root
            else:
                parent = self._account(above, by_name, (*inside, account.name))
            found = Association(account.name, account.shares, parent, is_user=False)
            self._accounts[account.name] = found
        return found

    def _user(self, account: str, user: str, shares: int | str) -> Association:
        above = self._accounts.get(account)
        if above is None:
            above = self._accounts[account] = Association(account, 1, self.root, is_user=False)
        found = self.users[account, user] = Association(user, shares, above, is_user=True)
        return found

    def use(self, whose: tuple[str, str], billed: float, start_s: int, end_s: int) -> None:
        """Add what a job of an association has used from its start until now (or its end)."""
        if self._applied_s is not None:
            start_s = max(start_s, self._applied_s)
        length_s = max(0, end_s - start_s)
        usage = billed * length_s * self._decay**length_s
        association: Association | None = self.users.get(whose) or self._user(*whose, 1)
        while association is not None:
            association.usage += usage
            association = association.parent

    def decay(self, now_s: int) -> None:
        """Let all usage decay until now. Call it before adding the usage of running jobs."""
        if self._applied_s is not None:
            factor = self._decay ** (now_s - self._applied_s)
            for association in (*self._accounts.values(), *self.users.values()):
                association.usage *= factor

    def applied(self, now_s: int) -> None:
        """Note that all usage until now has been added."""
        self._applied_s = now_s

    def rank(self, now_s: int) -> None:
        """Compute the factors of all users from the usage until now."""
        self.applied(now_s)
        self._users_in_all = len(self.users)
        self._rank = self._rank_without_ties = self._users_in_all
        self._names = {id(user): name for name, user in self.users.items()}
        self._visit(self.root.children, tied=False)

    def state(self) -> UsageState:
        """All usage and factors, for `restore` in another run."""
        accounts = {name: account.usage for name, account in self._accounts.items()}
        users = {name: user.usage for name, user in self.users.items()}
        return UsageState(accounts, users, dict(self.factors), self._applied_s)

    def restore(self, state: UsageState) -> None:
        """Go on with the usage and the factors of another run."""
        for account, usage in state.accounts.items():
            if account in self._accounts:
                self._accounts[account].usage = usage
        for whose, usage in state.users.items():
            (self.users.get(whose) or self._user(*whose, 1)).usage = usage
        self.factors, self._applied_s = dict(state.factors), state.applied_s

    def _visit(self, siblings: Sequence[Association], *, tied: bool) -> None:
        """Rank the users below these siblings; if `tied`, the first ties with the one before it."""
        level = sum(int(x.shares) for x in siblings if x.shares != "parent")
        for association in siblings:
            association.level_fs = _level_fs(association, level)
        before: float | None = None
        ranked = sorted(siblings, key=lambda x: (-x.level_fs, not x.is_user))
        for index, association in enumerate(ranked):
            ties = tied if index == 0 and tied else association.level_fs == before
            if association.is_user:
                if not ties:
                    self._rank = self._rank_without_ties
                name = self._names[id(association)]
                self.factors[name] = self._rank / self._users_in_all
                self._rank_without_ties -= 1
            else:
                self._visit(association.children, tied=ties)
            before = association.level_fs


def _level_fs(association: Association, level: int) -> float:
    """The level fair share of an association; `level` is the sum of shares on its level."""
    parent = association.parent
    assert parent is not None
    if association.shares == "parent":
        return math.inf if association.is_user else 2.0**32
    shares = int(association.shares)
    if not shares:
        return 0.0
    used = association.usage / parent.usage if parent.usage else 0.0
    return shares / level / used if used else math.inf
