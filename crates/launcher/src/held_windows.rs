//! The windows that a shim may begin by itself, as far as the daemon can know.

use miserly_launch::{AttemptPhase, BootTime, ReplyMessage, ReservedWindow, ShimCommand, ShimReply};

/// The windows that the shim of an attempt may have.
///
/// A shim has at most one. While a command that changes it is not answered, it may have the one before or the one after.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeldWindows {
    /// Whether nothing is known: an earlier daemon may have sent anything.
    is_unknown: bool,
    /// The window by the last answer.
    window: Option<ReservedWindow>,
    /// The windows of commands that are not answered, by the numbers of these.
    sent: Vec<(u64, Option<ReservedWindow>)>,
}

/// A use of processors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpuUse<'a> {
    pub(crate) from: BootTime,
    pub(crate) until: BootTime,
    pub(crate) cpus: &'a [u32],
}

impl<'a> CpuUse<'a> {
    /// Returns the use of a window.
    pub(crate) fn of(window: &'a ReservedWindow) -> CpuUse<'a> {
        CpuUse { from: window.start, until: window.end, cpus: &window.cpus }
    }

    /// Returns whether a window has one of the processors at the same time.
    pub(crate) fn overlaps(&self, window: &ReservedWindow) -> bool {
        let together = self.from < window.end && window.start < self.until;
        together && self.cpus.iter().any(|cpu| window.cpus.contains(cpu))
    }
}

impl HeldWindows {
    /// Returns the state of a shim of which nothing is known.
    pub(crate) fn unknown() -> HeldWindows {
        HeldWindows { is_unknown: true, ..HeldWindows::default() }
    }

    /// Returns the state of a shim with this window.
    pub(crate) fn of(window: Option<ReservedWindow>) -> HeldWindows {
        HeldWindows { window, ..HeldWindows::default() }
    }

    /// Returns whether the shim may have a window.
    pub(crate) fn has_any(&self) -> bool {
        self.is_unknown || self.all().next().is_some()
    }

    /// Returns the windows that the shim may have, as far as they are known.
    pub(crate) fn all(&self) -> impl Iterator<Item = &ReservedWindow> {
        self.window.iter().chain(self.sent.iter().filter_map(|(_, window)| window.as_ref()))
    }

    /// Returns whether the shim may have a window that overlaps with a use.
    pub(crate) fn overlaps(&self, used: CpuUse<'_>) -> bool {
        self.is_unknown || self.all().any(|window| used.overlaps(window))
    }

    /// Returns the window that the shim has by its last answer.
    pub(crate) const fn known(&self) -> Option<&ReservedWindow> {
        self.window.as_ref()
    }

    /// Returns the window that the shim has if it obeys all commands.
    pub(crate) fn last(&self) -> Option<&ReservedWindow> {
        self.sent.last().map_or(self.window.as_ref(), |(_, window)| window.as_ref())
    }

    /// Takes note of a command that was sent under a number.
    pub(crate) fn sent(&mut self, number: u64, command: &ShimCommand) {
        match command {
            ShimCommand::SetWindow(window) => self.sent.push((number, Some(window.clone()))),
            ShimCommand::RevokeWindow | ShimCommand::Withdraw | ShimCommand::BeginWindow { .. } => {
                self.sent.push((number, None));
            }
            _ => {}
        }
    }

    /// Takes note of an answer by a shim of a version of the protocol.
    pub(crate) fn answered(&mut self, answer: &ReplyMessage, version: u32) {
        let ShimReply::Done(state) = &answer.reply else {
            // A refused command has changed nothing.
            self.sent.retain(|(number, _)| *number != answer.number);
            return;
        };
        // Answers come in the order of the commands.
        let obeyed = self.sent.extract_if(.., |(number, _)| *number <= answer.number).last();
        self.is_unknown = false;
        self.window = match state.phase {
            // A window that has begun is no plan.
            _ if state.end.is_some() => None,
            AttemptPhase::Ending(_) | AttemptPhase::Ended(_) => None,
            // Version 0 tells no window.
            _ if version == 0 => obeyed.map_or_else(|| self.window.take(), |(_, window)| window),
            _ => state.window.clone(),
        };
    }
}

#[cfg(test)]
mod tests {
    use miserly_launch::{AttemptState, PROTOCOL_VERSION};

    use super::*;

    fn window(start: i64, end: i64, cpu: u32) -> ReservedWindow {
        ReservedWindow { start: BootTime(start), end: BootTime(end), cpus: vec![cpu], after: None }
    }

    fn answer(number: u64, window: Option<ReservedWindow>) -> ReplyMessage {
        let (phase, end) = (AttemptPhase::Waiting, None);
        let (cpus, affinity) = (vec![], vec![]);
        let state = AttemptState { phase, idle: false, cpus, affinity, end, window, activity: None };
        ReplyMessage { number, reply: ShimReply::Done(state), hello: None }
    }

    fn has(held: &HeldWindows, from: i64, until: i64, cpu: u32) -> bool {
        held.overlaps(CpuUse { from: BootTime(from), until: BootTime(until), cpus: &[cpu] })
    }

    #[test]
    fn a_window_is_lost_when_the_shim_says_so_and_not_before() {
        let mut held = HeldWindows::of(Some(window(10, 20, 1)));
        assert!(has(&held, 0, 11, 1));
        assert!(!has(&held, 0, 10, 1) && !has(&held, 20, 30, 1) && !has(&held, 0, 30, 2));
        held.sent(4, &ShimCommand::RevokeWindow);
        assert!(has(&held, 0, 11, 1));
        held.answered(&answer(3, Some(window(10, 20, 1))), PROTOCOL_VERSION);
        assert!(has(&held, 0, 11, 1));
        held.answered(&answer(4, None), PROTOCOL_VERSION);
        assert!(!held.has_any());
    }

    #[test]
    fn a_shim_may_have_each_window_that_was_sent() {
        let mut held = HeldWindows::of(Some(window(10, 20, 1)));
        held.sent(1, &ShimCommand::SetWindow(window(30, 40, 2)));
        held.sent(2, &ShimCommand::SetWindow(window(50, 60, 3)));
        assert!(has(&held, 10, 20, 1) && has(&held, 30, 40, 2) && has(&held, 50, 60, 3));
        held.answered(&answer(1, Some(window(30, 40, 2))), PROTOCOL_VERSION);
        assert!(!has(&held, 10, 20, 1) && has(&held, 30, 40, 2) && has(&held, 50, 60, 3));
    }

    #[test]
    fn an_unknown_shim_may_have_any_window_until_it_answers() {
        let mut held = HeldWindows::unknown();
        assert!(has(&held, 0, 1, 7));
        held.answered(&answer(1, None), PROTOCOL_VERSION);
        assert!(!held.has_any());
    }

    #[test]
    fn a_shim_of_version_0_has_the_window_that_it_took() {
        let mut held = HeldWindows::of(None);
        held.sent(1, &ShimCommand::SetWindow(window(10, 20, 1)));
        held.answered(&answer(1, None), 0);
        assert!(has(&held, 10, 20, 1));
        held.answered(&answer(2, None), 0);
        assert!(has(&held, 10, 20, 1));
        held.answered(&answer(3, None), 1);
        assert!(!held.has_any());
    }
}
