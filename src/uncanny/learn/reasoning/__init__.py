"""AnomReasonor: a vision-language model that lists semantic anomalies, trained on verified ones."""
