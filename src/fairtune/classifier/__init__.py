"""What is behind `TextClassifier`: reading texts, fitting, predicting, saving."""
