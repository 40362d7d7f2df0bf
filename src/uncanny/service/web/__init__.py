"""The pages of the service: jobs, a new one, one as it runs, its report, its review, its export."""
