"""Entries of tests of calibration, of resolution and of the decomposition of the Brier score."""

from __future__ import annotations

from monitor.metrics import debiased, decomposition, resolution, significance
from monitor.metrics.metric import Family, Metric, Subject

SIGNIFICANCE = Family(
    "significance",
    "whether a version's miscalibration is more than chance, at a time that was fixed beforehand",
    False,
    (
        Metric("ece_squared", "ece_squared", "Sum of squared gaps weighted by bin.", debiased.ece_squared, "1", positive=True),
        Metric("ece_l2", "ece_l2", "Root of it.", debiased.ece_l2, "1", positive=True),
        Metric(
            "ece_squared_floor",
            "ece_squared_floor",
            "What a perfectly calibrated model would show in ece_squared.",
            debiased.ece_squared_floor,
            "1",
            positive=True,
        ),
        Metric(
            "ece_squared_debiased",
            "ece_squared_debiased",
            "ece_squared without its bias; may be negative.",
            debiased.ece_squared_debiased,
            "1",
            positive=True,
        ),
        Metric(
            "ece_squared_debiased_skipped",
            "ece_squared_debiased_skipped",
            "Bins of one event, which it leaves out.",
            debiased.ece_squared_debiased_skipped,
            "1",
            positive=True,
            count="",
        ),
        Metric(
            "overconfidence_z",
            "overconfidence_z",
            "Overconfidence in standard deviations under calibration.",
            significance.overconfidence_z,
            "sd",
            positive=True,
        ),
        Metric("spiegelhalter_z", "spiegelhalter_z", "Spiegelhalter's z.", significance.spiegelhalter_z, "sd", positive=True),
        Metric("chi2", "chi2", "Chi-square of the report bins, merged until large enough.", significance.chi2, "1", positive=True),
        Metric("chi2_df", "chi2_df", "Its degrees of freedom.", significance.chi2_df, "1", positive=True),
        Metric("chi2_p", "chi2_p_ratio", "Its p-value.", significance.chi2_p, positive=True),
        Metric(
            "bin_p_holm_min",
            "bin_p_holm_min_ratio",
            "Smallest exact p-value of a report bin, corrected by Holm.",
            significance.bin_p_holm_min,
            positive=True,
        ),
        Metric(
            "p",
            "bin_p_ratio",
            "Exact two-sided p-value of the bin.",
            significance.bin_p,
            subject=Subject.BIN,
            count="count",
        ),
        Metric(
            "p_holm",
            "bin_p_holm_ratio",
            "The same, corrected by Holm for all bins.",
            significance.bin_p_holm,
            subject=Subject.BIN,
            count="count",
        ),
    ),
)

RESOLUTION = Family(
    "resolution",
    "whether ECE depends on how bins are cut",
    False,
    (
        *(
            Metric(
                f"ece_{bins}_bins", f"ece_{bins}_bins_ratio", f"ECE over {bins} equal bins.", resolution.ece_of_bins(bins), count="labelled"
            )
            for bins in resolution.RESOLUTIONS
        ),
        Metric(
            "ece_mass",
            "ece_mass_ratio",
            "ECE over bins of equal mass, snapped to the grid.",
            resolution.ece_mass,
            count="labelled",
        ),
        Metric(
            "ece_mass_tolerance",
            "ece_mass_tolerance_ratio",
            "How far the mass of such a bin may be off: the largest share of a grid bin.",
            resolution.ece_mass_tolerance,
            count="labelled",
        ),
    ),
)

DECOMPOSITION = Family(
    "decomposition",
    "whether a Brier score is bad for calibration or for discrimination",
    False,
    (
        Metric("brier_reliability", "brier_reliability", "Calibration part.", decomposition.brier_reliability, "1", positive=True),
        Metric("brier_resolution", "brier_resolution", "Discrimination part.", decomposition.brier_resolution, "1", positive=True),
        Metric(
            "brier_uncertainty", "brier_uncertainty", "What the base rate alone costs.", decomposition.brier_uncertainty, "1", positive=True
        ),
        Metric(
            "brier_within_bin_variance",
            "brier_within_bin_variance",
            "Spread of confidences inside bins.",
            decomposition.brier_within_bin_variance,
            "1",
            positive=True,
        ),
        Metric(
            "brier_within_bin_covariance",
            "brier_within_bin_covariance",
            "Discrimination inside bins.",
            decomposition.brier_within_bin_covariance,
            "1",
            positive=True,
        ),
        Metric(
            "brier_generalized_resolution",
            "brier_generalized_resolution",
            "Discrimination part with what is inside bins.",
            decomposition.brier_generalized_resolution,
            "1",
            positive=True,
        ),
        Metric("brier_skill", "brier_skill", "Share of the base rate's Brier score saved.", decomposition.brier_skill, "1", positive=True),
    ),
)
