//! The activity of an attempt, as its shim measures it: the shim is asked for it.

use std::time::Duration;

use miserly_launch::{Activity, BootTime};

/// What is known of the activity of an attempt.
#[derive(Debug, Default)]
pub(crate) struct ActivityReports {
    /// The time between two questions; `None` if its shim does not measure it.
    interval: Option<Duration>,
    asked: Option<BootTime>,
    /// The last answer.
    known: Option<Activity>,
    /// The last answer that was reported. A new daemon does not know what an earlier one has reported.
    reported: Option<Activity>,
}

impl ActivityReports {
    /// Sets the time between two questions, if the shim measures the activity.
    pub(crate) fn expect(&mut self, interval: Option<Duration>) {
        self.interval = interval;
    }

    /// Returns the instant of the next question.
    pub(crate) fn ask_at(&self) -> Option<BootTime> {
        let interval = self.interval?;
        Some(self.asked.map_or(BootTime(0), |asked| asked.after(interval)))
    }

    /// Takes note of a question.
    pub(crate) fn ask(&mut self, now: BootTime) {
        self.asked = Some(now);
    }

    /// Takes note of an answer.
    pub(crate) fn answered(&mut self, activity: Option<Activity>) {
        if let Some(activity) = activity {
            (self.interval, self.known) = (Some(activity.interval), Some(activity));
        }
    }

    /// Returns the last answer once, if it is news.
    pub(crate) fn take(&mut self) -> Option<Activity> {
        let is_news = |known: &Activity| self.reported.is_none_or(|last| last.idle_since != known.idle_since);
        let news = self.known.filter(is_news)?;
        self.reported = Some(news);
        Some(news)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shim_is_asked_as_often_as_it_looks_and_only_news_is_reported() {
        let second = |second: i64| BootTime(second * 1_000_000);
        let mut reports = ActivityReports::default();
        assert_eq!(reports.ask_at(), None);
        reports.answered(None);
        assert!(reports.ask_at().is_none() && reports.take().is_none());
        let activity = |idle_since| Some(Activity { interval: Duration::from_secs(30), idle_since });
        reports.answered(activity(None));
        assert_eq!(reports.take(), activity(None), "an earlier daemon may have reported something else");
        reports.ask(second(10));
        assert_eq!(reports.ask_at(), Some(second(40)));
        reports.answered(activity(None));
        assert_eq!(reports.take(), None);
        reports.answered(activity(Some(second(20))));
        assert_eq!(reports.take(), activity(Some(second(20))));
    }
}
