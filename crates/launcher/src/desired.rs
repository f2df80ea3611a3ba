//! The state that an attempt shall have, as far as its shim has not acknowledged it.
//!
//! Commands are merged: a later one replaces those that it makes superfluous. What is left is sent,
//! and sent again after a reconnect or a refusal, until the shim acknowledges it. Every command
//! sets a state, so a repeated one changes nothing.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use miserly_launch::{AttemptPhase, BootTime, ReplyMessage, ShimCommand, ShimRefusal, ShimReply};
use miserly_marks::mark;

/// The first pause before a refused command is sent again. Each pause is twice as long as the last.
const FIRST: Duration = Duration::from_millis(100);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(5);

/// The most signals that wait for an acknowledgement. Further ones are dropped.
const MOST_SIGNALS: usize = 100;

/// An acknowledgement: dropped when the shim has obeyed, or a later command replaces this one.
pub type Ack = Arc<mpsc::Sender<()>>;

/// The broken connections after which a signal is given up.
///
/// A shim of protocol version 0 closes the connection at a signal, and receives no command behind it.
const MOST_BREAKS: u32 = 2;

/// The commands that are not acknowledged, in order.
#[derive(Debug, Default)]
pub(crate) struct DesiredState {
    parts: Vec<Part>,
    /// Whether the attempt shall end. Nothing else matters then.
    ends: bool,
}

#[derive(Debug)]
struct Part {
    command: ShimCommand,
    _ack: Option<Ack>,
    delivery: Delivery,
    /// Pause after the next refusal.
    pause: Duration,
    /// How often the connection broke before its answer.
    breaks: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Delivery {
    /// To be sent.
    Due,
    /// Sent under this number, and not answered.
    Sent { number: u64, at: BootTime },
    /// Refused, and to be sent again.
    Refused { again: BootTime },
}

impl DesiredState {
    /// Adds a command, and removes the commands that it makes superfluous.
    pub(crate) fn merge(&mut self, command: ShimCommand, ack: Option<Ack>) {
        if self.ends && !matches!(command, ShimCommand::Kill { .. }) {
            return;
        }
        let Some(command) = self.absorb(command) else { return };
        self.ends |= matches!(command, ShimCommand::Kill { .. } | ShimCommand::Checkpoint { .. });
        self.parts.push(Part { command, _ack: ack, delivery: Delivery::Due, pause: FIRST, breaks: 0 });
    }

    /// Changes the parts for a new command. Returns the command, unless a part now contains it.
    fn absorb(&mut self, command: ShimCommand) -> Option<ShimCommand> {
        use ShimCommand::{
            BeginWindow, Checkpoint, Kill, Resume, RevokeWindow, RunEarly, SetCpus, SetEnd, SetRunLimit,
            SetWindow, Signal, Status, Stop, Withdraw,
        };
        match &command {
            BeginWindow { .. } => self.drop_all(|part| !matches!(part.command, Signal { .. })),
            Signal { nth, .. } => {
                let repeats = |part: &Part| matches!(part.command, Signal { nth: own, .. } if own == *nth);
                if self.parts.iter().any(repeats) || self.signals() >= MOST_SIGNALS {
                    return None;
                }
            }
            Kill { grace } => {
                let earlier = self.parts.iter().filter_map(|part| match part.command {
                    Kill { grace } => Some(grace),
                    _ => None,
                });
                let grace = earlier.chain([*grace]).min().unwrap_or(*grace);
                self.parts.clear();
                return Some(Kill { grace });
            }
            Stop | Resume => self.drop_all(|part| {
                let refused = part.pause > FIRST;
                // A refused begin would resume the job that is to stop.
                matches!(part.command, Stop | Resume)
                    || (matches!(part.command, BeginWindow { .. }) && refused)
            }),
            SetCpus { cpus } => {
                if self.change_begin(|own, _| own.clone_from(cpus)) {
                    return None;
                }
                self.drop_all(|part| matches!(part.command, SetCpus { .. }));
            }
            SetEnd { end, max_after_resume: None } => {
                if self.change_begin(|_, own| *own = *end) {
                    return None;
                }
                self.drop_all(|part| matches!(part.command, SetEnd { .. } | SetRunLimit { .. }));
            }
            SetEnd { .. } | SetRunLimit { .. } => {
                self.drop_all(|part| matches!(part.command, SetEnd { .. } | SetRunLimit { .. }));
            }
            SetWindow(_) | RevokeWindow => {
                self.drop_all(|part| matches!(part.command, SetWindow(_) | RevokeWindow));
            }
            // A request to end it may follow, and takes effect earlier only.
            Checkpoint { .. } | Withdraw => self.parts.clear(),
            RunEarly { .. } => self.drop_all(|part| matches!(part.command, RunEarly { .. })),
            Status => self.drop_all(|part| part.command == Status),
        }
        Some(command)
    }

    fn signals(&self) -> usize {
        self.parts.iter().filter(|part| matches!(part.command, ShimCommand::Signal { .. })).count()
    }

    fn drop_all(&mut self, superfluous: impl Fn(&Part) -> bool) {
        self.parts.retain(|part| !superfluous(part));
    }

    /// Changes the processors or the end of a window that is still to begin, if there is one.
    fn change_begin(&mut self, change: impl Fn(&mut Vec<u32>, &mut BootTime)) -> bool {
        let begin = self.parts.iter_mut().find_map(|part| match &mut part.command {
            ShimCommand::BeginWindow { cpus, end } => Some((cpus, end, &mut part.delivery)),
            _ => None,
        });
        let Some((cpus, end, delivery)) = begin else { return false };
        change(cpus, end);
        *delivery = Delivery::Due;
        true
    }

    /// Sends what is due, in order.
    ///
    /// # Errors
    /// The first error of `send`, which returns the number of the command.
    pub(crate) fn send<E>(
        &mut self,
        now: BootTime,
        mut send: impl FnMut(&ShimCommand) -> Result<u64, E>,
    ) -> Result<(), E> {
        for part in &mut self.parts {
            let due = match part.delivery {
                Delivery::Due => true,
                Delivery::Refused { again } => again <= now,
                Delivery::Sent { .. } => false,
            };
            if due {
                part.delivery = Delivery::Sent { number: send(&part.command)?, at: now };
            }
        }
        Ok(())
    }

    /// Sends everything again: the connection over which it was sent is broken. Returns the signals that are given up.
    pub(crate) fn disconnected(&mut self) -> Vec<ShimCommand> {
        for part in &mut self.parts {
            if matches!(part.delivery, Delivery::Sent { .. }) {
                mark!("a command is sent again");
                part.delivery = Delivery::Due;
                part.breaks += 1;
            }
        }
        let breaks = |part: &mut Part| {
            part.breaks >= MOST_BREAKS && matches!(part.command, ShimCommand::Signal { .. })
        };
        self.parts.extract_if(.., breaks).map(|part| part.command).collect()
    }

    /// Applies a reply of the shim. Returns a text for the log, once for each command.
    pub(crate) fn answered(&mut self, answer: &ReplyMessage, now: BootTime) -> Option<String> {
        let sent =
            |part: &Part| matches!(part.delivery, Delivery::Sent { number, .. } if number == answer.number);
        let at = self.parts.iter().position(sent)?;
        let part = &mut self.parts[at];
        mark!("an answer");
        let problem = match &answer.reply {
            // Before its command begins, a job is on no processors of its own.
            ShimReply::Done(state) if state.phase == AttemptPhase::Starting => None,
            ShimReply::Done(state) => match part.command.cpus() {
                Some(cpus) if !state.affinity.iter().all(|cpu| cpus.contains(cpu)) => {
                    let problem = format!("it runs on the cpus {:?}, not on {cpus:?}", state.affinity);
                    part.command = ShimCommand::SetCpus { cpus: cpus.to_vec() };
                    mark!("a job is not on its processors");
                    return part.retry(now).then_some(problem);
                }
                _ => None,
            },
            // The job runs until its grace ends, whatever else it is told. Its supervision reports a window that has begun.
            ShimReply::Refused(ShimRefusal::Ending | ShimRefusal::Begun) => None,
            // Processes that have not stopped yet stop when they can.
            ShimReply::NotStopped { running, .. } => Some(format!("{running:?} have not stopped")),
            ShimReply::Refused(ShimRefusal::Unknown { error }) | ShimReply::Unknown { error } => {
                Some(format!("its shim is of another version: {error}"))
            }
            ShimReply::Refused(refusal) => {
                mark!("a command is refused");
                let problem = refusal.to_string();
                return part.retry(now).then_some(problem);
            }
        };
        let part = self.parts.remove(at);
        problem.map(|problem| format!("{:?}: {problem}", part.command))
    }

    /// Returns the instant at which a refused command is sent again.
    pub(crate) fn next(&self) -> Option<BootTime> {
        let again = |part: &Part| match part.delivery {
            Delivery::Refused { again } => Some(again),
            Delivery::Due | Delivery::Sent { .. } => None,
        };
        self.parts.iter().filter_map(again).min()
    }

    /// Returns the instant since which the shim owes an answer.
    pub(crate) fn unanswered_since(&self) -> Option<BootTime> {
        let since = |part: &Part| match part.delivery {
            Delivery::Sent { at, .. } => Some(at),
            Delivery::Due | Delivery::Refused { .. } => None,
        };
        self.parts.iter().filter_map(since).min()
    }
}

impl Part {
    /// Schedules the command again, later each time. Returns whether this is the first time.
    fn retry(&mut self, now: BootTime) -> bool {
        self.delivery = Delivery::Refused { again: now.after(self.pause) };
        let is_first = self.pause == FIRST;
        self.pause = (self.pause * 2).min(LONGEST);
        is_first
    }
}

#[cfg(test)]
mod tests {
    use miserly_launch::AttemptState;

    use super::*;
    use ShimCommand::{BeginWindow, Kill, Resume, SetCpus, SetEnd, SetRunLimit, Stop};

    const NOW: BootTime = BootTime(1_000_000);
    const SECOND: Duration = Duration::from_secs(1);

    fn begin(cpu: u32, end: i64) -> ShimCommand {
        BeginWindow { cpus: vec![cpu], end: BootTime(end) }
    }

    fn set_end(end: i64) -> ShimCommand {
        SetEnd { end: BootTime(end), max_after_resume: None }
    }

    fn kill(secs: u64) -> ShimCommand {
        Kill { grace: Duration::from_secs(secs) }
    }

    fn desired(commands: &[ShimCommand]) -> DesiredState {
        let mut desired = DesiredState::default();
        for command in commands {
            desired.merge(command.clone(), None);
        }
        desired
    }

    /// Returns what is due now, numbered from 1.
    fn send(desired: &mut DesiredState, now: BootTime) -> Vec<ShimCommand> {
        let mut all = vec![];
        let note = |command: &ShimCommand| {
            all.push(command.clone());
            Ok::<_, ()>(all.len() as u64)
        };
        desired.send(now, note).unwrap();
        all
    }

    #[track_caller]
    fn check(commands: &[ShimCommand], expect: &[ShimCommand]) {
        assert_eq!(send(&mut desired(commands), NOW), expect);
    }

    fn done(number: u64, affinity: &[u32]) -> ReplyMessage {
        let affinity = affinity.to_vec();
        let (phase, cpus) = (AttemptPhase::Running, vec![0]);
        let state =
            AttemptState { phase, idle: false, cpus, affinity, end: None, window: None, activity: None };
        ReplyMessage { number, reply: ShimReply::Done(state), hello: None }
    }

    fn refused(number: u64, refusal: ShimRefusal) -> ReplyMessage {
        ReplyMessage { number, reply: ShimReply::Refused(refusal), hello: None }
    }

    fn bad_cpus() -> ShimRefusal {
        ShimRefusal::Cpus { cpus: vec![5], error: "offline".to_owned() }
    }

    #[test]
    fn a_later_command_replaces_those_that_it_makes_superfluous() {
        check(&[Stop, Resume, Stop], &[Stop]);
        check(&[set_end(5), SetRunLimit { limit: SECOND }, set_end(6)], &[set_end(6)]);
        check(&[Stop, set_end(5), begin(1, 9)], &[begin(1, 9)]);
        check(&[begin(1, 9), Stop], &[begin(1, 9), Stop]);
        check(&[begin(1, 9), set_end(12), SetCpus { cpus: vec![3] }], &[begin(3, 12)]);
        check(&[begin(1, 9), kill(5), Resume, kill(3), kill(8)], &[kill(3)]);
        let checkpoint = || ShimCommand::Checkpoint { until: BootTime(9) };
        check(&[begin(1, 9), Stop, checkpoint(), Resume, checkpoint()], &[checkpoint()]);
        check(&[checkpoint(), kill(5)], &[kill(5)]);
        check(&[kill(5), checkpoint()], &[kill(5)]);
    }

    #[test]
    fn signals_stay_in_order_and_each_is_sent_once() {
        let signal = |nth| ShimCommand::Signal { nth, signal: 10, main_only: false };
        check(&[signal(1), signal(2), signal(2), Stop], &[signal(1), signal(2), Stop]);
        check(&[signal(1), begin(1, 9)], &[signal(1), begin(1, 9)]);
        check(&[signal(1), kill(3)], &[kill(3)]);
        let many: Vec<ShimCommand> = (1..=300).map(signal).collect();
        assert_eq!(send(&mut desired(&many), NOW).len(), MOST_SIGNALS);
    }

    #[test]
    fn a_command_is_sent_once_and_again_after_a_disconnect_until_it_is_answered() {
        let mut desired = desired(&[kill(3)]);
        assert_eq!(send(&mut desired, NOW), [kill(3)]);
        assert_eq!(send(&mut desired, NOW), []);
        assert_eq!(desired.unanswered_since(), Some(NOW));
        desired.disconnected();
        assert_eq!(desired.unanswered_since(), None);
        assert_eq!(send(&mut desired, NOW), [kill(3)]);
        assert_eq!(desired.answered(&done(1, &[0]), NOW), None);
        desired.disconnected();
        assert_eq!(send(&mut desired, NOW), []);
    }

    #[test]
    fn a_signal_at_which_a_shim_closes_its_connections_keeps_no_other_command_from_it() {
        let signal = ShimCommand::Signal { nth: 1, signal: 10, main_only: false };
        let mut desired = desired(&[signal.clone(), set_end(5)]);
        for given_up in [vec![], vec![signal.clone()]] {
            assert_eq!(send(&mut desired, NOW), [signal.clone(), set_end(5)]);
            assert_eq!(desired.disconnected(), given_up);
        }
        assert_eq!(send(&mut desired, NOW), [set_end(5)]);
        assert_eq!(desired.disconnected(), []);
        assert_eq!(send(&mut desired, NOW), [set_end(5)]);
    }

    #[test]
    fn an_answer_to_an_earlier_connection_acknowledges_nothing() {
        let mut desired = desired(&[set_end(5)]);
        send(&mut desired, NOW);
        assert_eq!(desired.answered(&done(7, &[0]), NOW), None);
        assert!(desired.unanswered_since().is_some());
    }

    #[test]
    fn a_refused_command_is_sent_again_later_each_time_and_logged_once() {
        let mut desired = desired(&[begin(5, 9)]);
        let mut now = NOW;
        for (nth, pause) in [100, 200, 400].into_iter().enumerate() {
            assert_eq!(send(&mut desired, now), [begin(5, 9)]);
            assert_eq!(desired.answered(&refused(1, bad_cpus()), now).is_some(), nth == 0);
            now = now.after(Duration::from_millis(pause));
            assert_eq!(desired.next(), Some(now));
            assert_eq!(send(&mut desired, now.before(Duration::from_millis(1))), []);
        }
    }

    #[test]
    fn a_refused_begin_does_not_resume_a_job_that_is_to_stop() {
        let mut desired = desired(&[begin(5, 9)]);
        send(&mut desired, NOW);
        desired.answered(&refused(1, bad_cpus()), NOW);
        desired.merge(Stop, None);
        assert_eq!(send(&mut desired, NOW.after(SECOND)), [Stop]);
    }

    #[test]
    fn a_job_on_other_processors_is_moved_again() {
        let mut desired = desired(&[begin(5, 9)]);
        send(&mut desired, NOW);
        let problem = desired.answered(&done(1, &[0, 5]), NOW).unwrap();
        assert!(problem.contains("[0, 5]"), "{problem}");
        assert_eq!(send(&mut desired, NOW.after(SECOND)), [SetCpus { cpus: vec![5] }]);
        assert_eq!(desired.answered(&done(1, &[5]), NOW), None);
        assert_eq!(desired.next(), None);
    }

    #[test]
    fn a_job_whose_command_has_not_begun_is_on_any_processors() {
        let mut desired = desired(&[begin(5, 9)]);
        send(&mut desired, NOW);
        let mut reply = done(1, &[0, 5]);
        if let ShimReply::Done(state) = &mut reply.reply {
            state.phase = AttemptPhase::Starting;
        }
        assert_eq!(desired.answered(&reply, NOW), None);
        assert_eq!(desired.next(), None);
    }

    #[test]
    fn a_command_that_the_shim_does_not_know_is_given_up() {
        let mut desired = desired(&[Resume]);
        send(&mut desired, NOW);
        let unknown = ShimRefusal::Unknown { error: "unknown variant".to_owned() };
        assert!(desired.answered(&refused(1, unknown), NOW).is_some());
        assert_eq!((desired.next(), desired.unanswered_since()), (None, None));
    }

    #[test]
    fn an_acknowledgement_is_dropped_when_the_shim_obeys_or_another_command_replaces_it() {
        let (sender, all) = mpsc::channel::<()>();
        let mut desired = DesiredState::default();
        desired.merge(Stop, Some(Arc::new(sender.clone())));
        desired.merge(Stop, Some(Arc::new(sender)));
        assert_eq!(all.try_recv(), Err(mpsc::TryRecvError::Empty));
        send(&mut desired, NOW);
        desired.answered(&done(1, &[0]), NOW);
        assert_eq!(all.try_recv(), Err(mpsc::TryRecvError::Disconnected));
    }
}
