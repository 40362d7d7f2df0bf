"""Anomalies as files of any form have them: predictions or truth, read whole or refused with every error."""
