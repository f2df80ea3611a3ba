//! The frames between the relay of a job and an attached client.
//!
//! A frame is one byte for its kind, four bytes for the length of its content (big endian), and the content. A reader skips
//! kinds that it does not know, so a later version can add some.
//!
//! The first frame of a client is [`ClientFrame::Open`], and the first one of the relay is [`RelayFrame::Hello`]. A client sends
//! at most [`WINDOW`] bytes of input that the relay has not acknowledged. So the relay always reads the frames that follow.

/// The most bytes of the content of a frame.
pub const LONGEST: usize = 16 << 10;

/// The most bytes of input that are on their way to the job.
pub const WINDOW: usize = 64 << 10;

/// The bytes of kind and length.
const HEAD: usize = 5;

/// A frame of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientFrame {
    /// Requests the output from a place on; `None` is the last part of it.
    Open {
        /// The place, in bytes since the start of the attempt.
        from: Option<u64>,
    },
    /// Input for the job.
    Input(Vec<u8>),
    /// The end of the input.
    EndOfInput,
    /// The size of the client's terminal.
    Size {
        /// Lines.
        rows: u16,
        /// Characters of a line.
        columns: u16,
    },
    /// A signal for the process group of the command.
    Signal(i32),
}

/// A frame of the relay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RelayFrame {
    /// The state at the begin of a connection.
    Hello(RelayHello),
    /// Output of the job.
    Output(Vec<u8>),
    /// Bytes of input that the job has got since the frame before.
    Taken(u32),
    /// Another client has attached. The connection ends.
    Replaced,
    /// The output has ended. The connection ends.
    EndOfOutput,
}

/// The state of a relay at the begin of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RelayHello {
    /// Whether the job has a terminal, whose output the relay sends.
    pub terminal: bool,
    /// Whether input reaches the job.
    pub takes_input: bool,
    /// The bytes of input of earlier clients that the job has not got.
    pub queued: u32,
    /// The place of the first byte of output, in bytes since the start of the attempt.
    pub from: u64,
    /// The length of the output file at the start of the attempt.
    pub base: u64,
}

/// Content that is no frame of this version. The connection cannot be used any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The content is too long.
    #[error("a frame of {0} bytes; the most are {LONGEST}")]
    TooLong(usize),
    /// The content of a known kind has another form.
    #[error("a malformed frame of kind {0}")]
    Malformed(u8),
}

/// A frame of one side.
pub trait Frame: Sized {
    /// Appends the frame to bytes.
    fn write(&self, to: &mut Vec<u8>);

    /// Returns the frame with this kind and content; `None` for an unknown kind.
    ///
    /// # Errors
    /// The content of a known kind has another form.
    fn read(kind: u8, content: &[u8]) -> Result<Option<Self>, FrameError>;
}

/// The last place: no output is this long.
const LAST_PART: u64 = u64::MAX;

impl Frame for ClientFrame {
    fn write(&self, to: &mut Vec<u8>) {
        match self {
            ClientFrame::Open { from } => append(to, 1, &[&from.unwrap_or(LAST_PART).to_be_bytes()]),
            ClientFrame::Input(bytes) => append(to, 2, &[bytes]),
            ClientFrame::EndOfInput => append(to, 3, &[]),
            ClientFrame::Size { rows, columns } => {
                append(to, 4, &[&rows.to_be_bytes(), &columns.to_be_bytes()]);
            }
            ClientFrame::Signal(number) => append(to, 5, &[&number.to_be_bytes()]),
        }
    }

    fn read(kind: u8, content: &[u8]) -> Result<Option<ClientFrame>, FrameError> {
        let mut fields = Fields { kind, content };
        Ok(Some(match kind {
            1 => {
                let from = u64::from_be_bytes(fields.take()?);
                ClientFrame::Open { from: (from != LAST_PART).then_some(from) }
            }
            2 => ClientFrame::Input(content.to_owned()),
            3 => ClientFrame::EndOfInput,
            4 => {
                let rows = u16::from_be_bytes(fields.take()?);
                ClientFrame::Size { rows, columns: u16::from_be_bytes(fields.take()?) }
            }
            5 => ClientFrame::Signal(i32::from_be_bytes(fields.take()?)),
            _ => return Ok(None),
        }))
    }
}

impl Frame for RelayFrame {
    fn write(&self, to: &mut Vec<u8>) {
        match self {
            RelayFrame::Hello(RelayHello { terminal, takes_input, queued, from, base }) => {
                let flags = [u8::from(*terminal), u8::from(*takes_input)];
                append(to, 65, &[&flags, &queued.to_be_bytes(), &from.to_be_bytes(), &base.to_be_bytes()]);
            }
            RelayFrame::Output(bytes) => append(to, 66, &[bytes]),
            RelayFrame::Taken(bytes) => append(to, 67, &[&bytes.to_be_bytes()]),
            RelayFrame::Replaced => append(to, 68, &[]),
            RelayFrame::EndOfOutput => append(to, 69, &[]),
        }
    }

    fn read(kind: u8, content: &[u8]) -> Result<Option<RelayFrame>, FrameError> {
        let mut fields = Fields { kind, content };
        Ok(Some(match kind {
            65 => {
                let [terminal, takes_input] = fields.take()?;
                RelayFrame::Hello(RelayHello {
                    terminal: terminal != 0,
                    takes_input: takes_input != 0,
                    queued: u32::from_be_bytes(fields.take()?),
                    from: u64::from_be_bytes(fields.take()?),
                    base: u64::from_be_bytes(fields.take()?),
                })
            }
            66 => RelayFrame::Output(content.to_owned()),
            67 => RelayFrame::Taken(u32::from_be_bytes(fields.take()?)),
            68 => RelayFrame::Replaced,
            69 => RelayFrame::EndOfOutput,
            _ => return Ok(None),
        }))
    }
}

fn append(to: &mut Vec<u8>, kind: u8, content: &[&[u8]]) {
    let length: usize = content.iter().map(|part| part.len()).sum();
    debug_assert!(length <= LONGEST, "a frame of {length} bytes");
    to.push(kind);
    to.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    for part in content {
        to.extend_from_slice(part);
    }
}

/// The content of a frame that is not read yet. A later version may add fields at its end.
struct Fields<'a> {
    kind: u8,
    content: &'a [u8],
}

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], FrameError> {
        let (first, rest) = self.content.split_first_chunk().ok_or(FrameError::Malformed(self.kind))?;
        self.content = rest;
        Ok(*first)
    }
}

/// The bytes of a connection that are not read yet: at most one frame that is not whole, and what was received with it.
#[derive(Debug, Default)]
pub struct FrameReader {
    bytes: Vec<u8>,
    /// The first byte of the next frame.
    at: usize,
}

impl FrameReader {
    /// Adds received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.at);
        self.at = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the next whole frame of a known kind; `None` if there is none yet.
    ///
    /// # Errors
    /// The bytes are no frames.
    pub fn next_frame<F: Frame>(&mut self) -> Result<Option<F>, FrameError> {
        loop {
            let unread = &self.bytes[self.at..];
            let Some((&[kind, ref length @ ..], rest)) = unread.split_first_chunk::<HEAD>() else {
                return Ok(None);
            };
            let length = u32::from_be_bytes(*length) as usize;
            if length > LONGEST {
                return Err(FrameError::TooLong(length));
            }
            let Some(content) = rest.get(..length) else { return Ok(None) };
            let frame = F::read(kind, content)?;
            self.at += HEAD + length;
            if frame.is_some() {
                return Ok(frame);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use proptest::prelude::*;

    use super::*;

    fn client_frames() -> Vec<ClientFrame> {
        vec![
            ClientFrame::Open { from: None },
            ClientFrame::Open { from: Some(7) },
            ClientFrame::Input(b"text".to_vec()),
            ClientFrame::Input(vec![0xff; LONGEST]),
            ClientFrame::Size { rows: 24, columns: 65535 },
            ClientFrame::Signal(2),
            ClientFrame::EndOfInput,
        ]
    }

    fn relay_frames() -> Vec<RelayFrame> {
        let hello = RelayHello { terminal: true, takes_input: false, queued: 3, from: 1 << 40, base: 9 };
        vec![
            RelayFrame::Hello(hello),
            RelayFrame::Output(vec![]),
            RelayFrame::Output(b"text".to_vec()),
            RelayFrame::Taken(64),
            RelayFrame::Replaced,
            RelayFrame::EndOfOutput,
        ]
    }

    /// Checks that frames are read as they were written, in pieces of any size.
    #[track_caller]
    fn check<F: Frame + PartialEq + Debug>(frames: &[F]) {
        let mut bytes = Vec::new();
        for frame in frames {
            frame.write(&mut bytes);
        }
        for size in [1, 2, 3, 7, 1000, bytes.len()] {
            let (mut reader, mut read) = (FrameReader::default(), Vec::new());
            for piece in bytes.chunks(size) {
                reader.push(piece);
                while let Some(frame) = reader.next_frame::<F>().unwrap() {
                    read.push(frame);
                }
            }
            assert_eq!(read, frames, "{size}");
        }
    }

    #[test]
    fn frames_are_the_same_in_pieces_of_any_size() {
        check(&client_frames());
        check(&relay_frames());
    }

    #[test]
    fn a_frame_that_is_too_long_is_an_error_before_its_content() {
        let mut reader = FrameReader::default();
        reader.push(&[2, 0, 0, 0x40, 1]);
        assert_eq!(reader.next_frame::<ClientFrame>(), Err(FrameError::TooLong(LONGEST + 1)));
    }

    #[test]
    fn an_unknown_kind_is_skipped_and_a_short_content_is_an_error() {
        let mut reader = FrameReader::default();
        reader.push(&[99, 0, 0, 0, 1, 7, 3, 0, 0, 0, 0]);
        assert_eq!(reader.next_frame(), Ok(Some(ClientFrame::EndOfInput)));
        reader.push(&[4, 0, 0, 0, 3, 0, 1, 2]);
        assert_eq!(reader.next_frame::<ClientFrame>(), Err(FrameError::Malformed(4)));
    }

    proptest! {
        /// A peer sends what it likes, and no more is kept than it sent.
        #[test]
        fn any_bytes_are_frames_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut reader = FrameReader::default();
            reader.push(&bytes);
            for _ in 0..=bytes.len() {
                if !matches!(reader.next_frame::<ClientFrame>(), Ok(Some(_))) {
                    break;
                }
            }
            prop_assert!(reader.bytes.len() <= bytes.len());
        }
    }
}
