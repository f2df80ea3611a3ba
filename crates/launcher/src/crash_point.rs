//! Crash points: the steps between which a daemon may die, for tests.
//!
//! The states between the steps are in docs/explanation/attempts.md.

/// A point at which a daemon may die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashPoint {
    /// The outcome of a batch is known, and nothing of it is on disk.
    BeforeCommit,
    /// The batch is on disk, and none of its actions and replies has been dispatched.
    AfterCommit,
    /// A thread is about to launch an attempt.
    BeforeLaunch,
    /// The shim of an attempt has begun, and the engine has not supervised it yet.
    AfterLaunch,
    /// A thread is about to send a command to a shim.
    BeforeCommand,
    /// The shim has acknowledged a command.
    AfterCommand,
    /// A thread has found the end of an attempt, and the engine does not know it.
    BeforeReport,
    /// The end of an attempt is on disk, and its folder is about to be removed.
    BeforeForget,
    /// A reply is about to be sent to a client.
    BeforeReply,
}

impl CrashPoint {
    /// Every crash point, in the order of the steps.
    pub const ALL: [CrashPoint; 9] = [
        CrashPoint::BeforeCommit,
        CrashPoint::AfterCommit,
        CrashPoint::BeforeLaunch,
        CrashPoint::AfterLaunch,
        CrashPoint::BeforeCommand,
        CrashPoint::AfterCommand,
        CrashPoint::BeforeReport,
        CrashPoint::BeforeForget,
        CrashPoint::BeforeReply,
    ];

    /// Returns the name of the point for tests.
    pub const fn name(self) -> &'static str {
        match self {
            CrashPoint::BeforeCommit => "before-commit",
            CrashPoint::AfterCommit => "after-commit",
            CrashPoint::BeforeLaunch => "before-launch",
            CrashPoint::AfterLaunch => "after-launch",
            CrashPoint::BeforeCommand => "before-command",
            CrashPoint::AfterCommand => "after-command",
            CrashPoint::BeforeReport => "before-report",
            CrashPoint::BeforeForget => "before-forget",
            CrashPoint::BeforeReply => "before-reply",
        }
    }
}
