//! Crash points: the steps between which a daemon may die, for tests.
//!
//! The states between the steps are in docs/explanation/attempts.md.

miserly_core::named_enum! {
    /// A point at which a daemon may die.
    pub enum CrashPoint {
        /// The outcome of a batch is known, and nothing of it is on disk.
        BeforeCommit "before-commit",
        /// The batch is on disk, and none of its actions and replies has been dispatched.
        AfterCommit "after-commit",
        /// A thread is about to launch an attempt.
        BeforeLaunch "before-launch",
        /// The shim of an attempt has begun, and the engine has not supervised it yet.
        AfterLaunch "after-launch",
        /// A thread is about to send a command to a shim.
        BeforeCommand "before-command",
        /// The shim has acknowledged a command.
        AfterCommand "after-command",
        /// A thread has found the end of an attempt, and the engine does not know it.
        BeforeReport "before-report",
        /// The end of an attempt is on disk, and its folder is about to be removed.
        BeforeForget "before-forget",
        /// A reply is about to be sent to a client.
        BeforeReply "before-reply",
    }
}
