"""Alerts on what comes in: labels, predictions, and records that are refused."""

from __future__ import annotations

from collections.abc import Sequence

from monitor.alerts.alert import SCRAPED, VERSION, WINDOW, Alert, Detail, Form, Needs, Severity
from monitor.alerts.promql import MATURE, SCRAPED_NAMES, VERSION_NAMES, WINDOW_START, since_clock

_PENDING = Detail("max by ($by) (calmon_pending_predictions{$m})", Form.COUNT)
_CONSUMED = Detail("max by ($by) (increase(calmon_records_consumed_total{$m}[1h]))", Form.COUNT)


def _newest(kind: str) -> str:
    return f'calmon_newest_event_timestamp_seconds{{kind="{kind}"}}'


def _newest_of(kind: str) -> Detail:
    return Detail(f'max by ($by) (calmon_newest_event_timestamp_seconds{{$m,kind="{kind}"}})', Form.TIME)


FEED: Sequence[Alert] = (
    Alert(
        name="CalmonLabelFeedDead",
        severity=Severity.PAGE,
        needs=Needs.TARGET,
        # Labels have stopped, or there never was one though predictions have matured; and predictions still come.
        expression=f"""(
  {since_clock(_newest("label"))} > ${{label_silence}}
  or on ({SCRAPED_NAMES})
  (
    {since_clock("calmon_evidence_matured_until_timestamp_seconds")}
    unless on ({SCRAPED_NAMES}) {_newest("label")}
  )
)
and on ({SCRAPED_NAMES}) {since_clock(_newest("prediction"))} < ${{label_silence}}
and on ({SCRAPED_NAMES}) sum by ({SCRAPED_NAMES}) (calmon_evidence_matured_predictions) >= ${{labelled}}
and on ({SCRAPED_NAMES}) calmon_pending_predictions >= ${{labelled}}""",
        form=Form.DURATION,
        wait="15m",
        hold="0s",
        labels=SCRAPED,
        summary="no labels come any more",
        description="The newest label that {instance} has seen is {value} old (bound: {label_silence}), of {newest}; {pending} predictions "
        "have no label. Nothing that needs labels can be told of any model or version until they come.",
        dashboard="calmon-pipeline",
        details={"pending": _PENDING, "newest": _newest_of("label")},
    ),
    Alert(
        name="CalmonCompletenessLow",
        severity=Severity.TICKET,
        needs=Needs.LABELS,
        expression=f"""calmon_completeness_ratio{{segment="all"}}
< on ({VERSION_NAMES}) group_left ()
(${{completeness_drop}} * calmon_evidence_matured_labelled / calmon_evidence_matured_predictions)
and calmon_predictions{{segment="all"}} >= ${{labelled}}
{MATURE}""",
        form=Form.RATIO,
        wait="12h",
        hold="1h",
        labels=WINDOW,
        summary="far fewer labels of {model} {model_version} come than used to",
        description="{value} of the {predictions} predictions of {model} {model_version} in window {window} have a label; over its whole "
        "life it is {usual} (bound: {completeness_drop} of that). The window began {since}.",
        dashboard="calmon-version",
        details={
            "predictions": Detail('max by ($by) (calmon_predictions{$m,segment="all"})', Form.COUNT),
            "usual": Detail("calmon_evidence_matured_labelled{$m} / calmon_evidence_matured_predictions{$m}", Form.RATIO, VERSION),
            "since": WINDOW_START,
        },
    ),
    Alert(
        name="CalmonLabelDelayGrew",
        severity=Severity.INFO,
        needs=Needs.LABELS,
        expression="""(rate(calmon_label_delay_seconds_sum[6h]) / rate(calmon_label_delay_seconds_count[6h]))
> ${delay_growth} * (calmon_label_delay_seconds_sum / calmon_label_delay_seconds_count)
and increase(calmon_label_delay_seconds_count[6h]) >= ${labelled}
and calmon_label_delay_seconds_count >= 10 * ${labelled}""",
        form=Form.DURATION,
        wait="1h",
        hold="6h",
        labels=VERSION,
        summary="labels of {model} {model_version} come later than they used to",
        description="Labels of {model} {model_version} in the last 6 hours were {value} late on average, {usual} over its whole life "
        "(bound: {delay_growth} times that); {recent} labels came. Windows whose lag is shorter than that are provisional.",
        dashboard="calmon-version",
        details={
            "usual": Detail(
                "max by ($by) (calmon_label_delay_seconds_sum{$m}) / max by ($by) (calmon_label_delay_seconds_count{$m})", Form.DURATION
            ),
            "recent": Detail("max by ($by) (increase(calmon_label_delay_seconds_count{$m}[6h]))", Form.COUNT),
        },
    ),
    Alert(
        name="CalmonNoPredictions",
        severity=Severity.TICKET,
        needs=Needs.TARGET,
        expression=f"{since_clock(_newest('prediction'))} > ${{prediction_silence}}",
        form=Form.DURATION,
        wait="10m",
        hold="0s",
        labels=SCRAPED,
        summary="no predictions come any more",
        description="The newest prediction that {instance} has seen is {value} old (bound: {prediction_silence}), of {newest}; "
        "{consumed} records came in the last hour.",
        dashboard="calmon-pipeline",
        details={"newest": _newest_of("prediction"), "consumed": _CONSUMED},
    ),
    Alert(
        name="CalmonQuarantineRatio",
        severity=Severity.TICKET,
        needs=Needs.TARGET,
        expression=f"""sum by ({SCRAPED_NAMES}) (increase(calmon_refused_total[1h]))
/ on ({SCRAPED_NAMES}) increase(calmon_records_consumed_total[1h])
> ${{refused}}
and on ({SCRAPED_NAMES}) increase(calmon_records_consumed_total[1h]) >= ${{labelled}}""",
        form=Form.RATIO,
        wait="10m",
        hold="1h",
        labels=SCRAPED,
        summary="many records are refused",
        description="{instance} refused {value} of the {consumed} records of the last hour (bound: {refused}); {waiting} wait for the "
        "quarantine.",
        dashboard="calmon-pipeline",
        details={"consumed": _CONSUMED, "waiting": Detail("max by ($by) (calmon_quarantine_waiting_records{$m})", Form.COUNT)},
    ),
    Alert(
        name="CalmonConflicts",
        severity=Severity.TICKET,
        needs=Needs.TARGET,
        expression=f"""sum by ({SCRAPED_NAMES}) (increase(calmon_refused_total{{reason=~"conflicting_(label|prediction)"}}[1h]))
> ${{conflicts}}""",
        form=Form.COUNT,
        wait="10m",
        hold="1h",
        labels=SCRAPED,
        summary="records contradict earlier ones",
        description="{instance} refused {value} records in the last hour because another of the same id says otherwise (bound: "
        "{conflicts}), of {consumed} records.",
        dashboard="calmon-pipeline",
        details={"consumed": _CONSUMED},
    ),
)
"""In the order of their severity."""
