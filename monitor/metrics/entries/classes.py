"""Entries of single classes, and of other mixes of classes."""

from __future__ import annotations

from monitor.metrics import calibration, class_metric, prior
from monitor.metrics.metric import Family, Metric, Subject
from monitor.names import CLASS_SEGMENT, ONE_VS_REST_SEGMENT

_CLASS = (CLASS_SEGMENT,)

CLASSES = Family(
    "classes",
    "which class a version gets wrong, and whether it is sure of it",
    False,
    (
        Metric(
            "class_predicted",
            "class_predicted",
            "Predictions of the class.",
            class_metric.class_predicted,
            "events",
            subject=Subject.CLASS,
            count="",
        ),
        Metric(
            "class_predicted_labelled",
            "class_predicted_labelled",
            "Labelled ones of these.",
            class_metric.class_predicted_labelled,
            "events",
            subject=Subject.CLASS,
            count="",
        ),
        Metric("class_true", "class_true", "Labels of the class.", class_metric.class_true, "events", subject=Subject.CLASS, count=""),
        Metric(
            "class_hits",
            "class_hits",
            "Events of the class that were predicted so.",
            class_metric.class_hits,
            "events",
            subject=Subject.CLASS,
            count="",
        ),
        Metric(
            "class_precision",
            "class_precision_ratio",
            "Share of right ones among predictions of the class.",
            class_metric.class_precision,
            subject=Subject.CLASS,
            count="class_predicted_labelled",
        ),
        Metric(
            "class_recall",
            "class_recall_ratio",
            "Share of the class's events that were predicted so.",
            class_metric.class_recall,
            subject=Subject.CLASS,
            count="class_true",
        ),
        Metric(
            "cw_precision",
            "class_cw_precision_ratio",
            "Precision weighted by confidence.",
            class_metric.cw_precision,
            subject=Subject.CLASS,
            count="class_predicted_labelled",
        ),
        Metric(
            "cw_recall",
            "class_cw_recall_ratio",
            "Recall weighted by confidence.",
            class_metric.cw_recall,
            subject=Subject.CLASS,
            count="class_true",
        ),
        Metric("cw_f1", "class_cw_f1_ratio", "F1 weighted by confidence.", class_metric.cw_f1, subject=Subject.CLASS, count="class_true"),
        Metric(
            "cw_f1_macro",
            "cw_f1_macro_ratio",
            "Mean of cw_f1 over the classes.",
            class_metric.cw_f1_macro,
            subject=Subject.VERSION,
            reads=_CLASS,
        ),
    ),
)

CLASSWISE = Family(
    "classwise",
    "which class's own probability is off, where the model is watched class by class",
    False,
    (
        Metric(
            "classwise_ece",
            "class_ece_ratio",
            "ECE of the class's own probability.",
            calibration.ece,
            subject=Subject.OWN,
            count="labelled",
        ),
        Metric(
            "classwise_overconfidence",
            "class_overconfidence",
            "Mean probability of the class minus its share of the labels.",
            calibration.overconfidence,
            "1",
            subject=Subject.OWN,
            count="labelled",
        ),
        Metric(
            "classwise_ece_mean",
            "classwise_ece_mean_ratio",
            "Mean of the classes' own ECE.",
            class_metric.classwise_ece_mean,
            subject=Subject.VERSION,
            count="labelled",
            reads=(ONE_VS_REST_SEGMENT,),
        ),
    ),
)

PRIOR = Family(
    "prior",
    "what a version would show under another mix of classes (target_prior)",
    False,
    (
        Metric(
            "prior_accuracy",
            "prior_accuracy_ratio",
            "Accuracy under the target prior.",
            prior.prior_accuracy,
            subject=Subject.VERSION,
            reads=_CLASS,
        ),
        Metric(
            "prior_mean_confidence",
            "prior_mean_confidence_ratio",
            "Mean confidence under the target prior.",
            prior.prior_mean_confidence,
            subject=Subject.VERSION,
            reads=_CLASS,
        ),
        Metric(
            "prior_overconfidence",
            "prior_overconfidence",
            "Overconfidence under the target prior.",
            prior.prior_overconfidence,
            "1",
            subject=Subject.VERSION,
            reads=_CLASS,
        ),
        Metric(
            "positive_prior_ece",
            "positive_prior_ece_ratio",
            "ECE of the positive class's probability under the target prior.",
            prior.positive_prior_ece,
            subject=Subject.VERSION,
            count="positive_labelled_used",
            reads=(ONE_VS_REST_SEGMENT,),
        ),
    ),
)
