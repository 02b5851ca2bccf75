"""Trackers: a study's ledger, sent where people look already. Each one shows one row per arm, and the arm's runs below it."""
