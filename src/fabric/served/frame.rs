//! What goes from one end to the other: frames, each a header of 32 bytes, and the bytes that it announces.
//!
//! ```text
//!   kind 1 | completes 1 | 0 | length 4 | key 4 | number 4 | address 8 | request 8
//! ```

/// Bytes of a header.
pub(in crate::fabric) const HEADER: usize = 32;

/// Four bytes, and eight, as a number.
#[inline]
pub(in crate::fabric) fn half(b: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]])
}
#[inline]
pub(in crate::fabric) fn word(b: &[u8], at: usize) -> u64 {
    u64::from(half(b, at)) | u64::from(half(b, at + 4)) << 32
}

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::fabric) enum Kind {
    /// The bytes behind it are written there.
    Write,
    /// The same, and the number is told.
    WriteWithNumber,
    /// So many bytes from there are wanted.
    Read,
    /// A word there is changed: by the first of two words behind the header, which is added,
    Add,
    /// or which is replaced by the second.
    Swap,
    /// A word there is one more if it is the one behind the header, and then the bytes behind that are written as many bytes behind the word as the
    /// number says.
    Append,
    /// What a read, a change or such a one wanted is behind it.
    Answer,
    /// The request, and all before it, are over. (0: none is. It says nothing.)
    Over,
    /// The request was refused: it used a wrong key or address.
    Refused,
}

const KINDS: [Kind; 9] = [
    Kind::Write,
    Kind::WriteWithNumber,
    Kind::Read,
    Kind::Add,
    Kind::Swap,
    Kind::Answer,
    Kind::Over,
    Kind::Refused,
    Kind::Append,
];

/// See the head of this file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::fabric) struct Header {
    pub kind: Kind,
    /// The other end says when it is over.
    pub asks: bool,
    pub len: u32,
    pub rkey: u32,
    /// Of a write by datagrams, the bytes of it that follow in other frames.
    pub number: u32,
    pub addr: u64,
    /// Number of the request.
    pub id: u64,
}

impl Header {
    /// With nothing but the number of a request.
    pub fn bare(kind: Kind, id: u64) -> Header {
        Header { kind, asks: false, len: 0, rkey: 0, number: 0, addr: 0, id }
    }
    #[inline]
    pub fn encode(&self) -> [u8; HEADER] {
        let mut b = [0; HEADER];
        (b[0], b[1]) = (KINDS.iter().position(|k| *k == self.kind).unwrap_or(0) as u8 + 1, self.asks as u8);
        b[4..8].copy_from_slice(&self.len.to_le_bytes());
        b[8..12].copy_from_slice(&self.rkey.to_le_bytes());
        b[12..16].copy_from_slice(&self.number.to_le_bytes());
        b[16..24].copy_from_slice(&self.addr.to_le_bytes());
        b[24..].copy_from_slice(&self.id.to_le_bytes());
        b
    }
    /// `None`: it is none.
    #[inline]
    pub fn decode(b: &[u8; HEADER]) -> Option<Header> {
        let kind = *KINDS.get(usize::from(b[0]).checked_sub(1)?)?;
        let asks = match b[1] {
            0 => false,
            1 => true,
            _ => return None,
        };
        let [len, rkey, number] = [4, 8, 12].map(|at| half(b, at));
        Some(Header { kind, asks, len, rkey, number, addr: word(b, 16), id: word(b, 24) })
    }
    /// Bytes that follow it.
    #[inline]
    pub fn follows(&self) -> usize {
        match self.kind {
            Kind::Write | Kind::WriteWithNumber | Kind::Answer => self.len as usize,
            Kind::Append => self.len as usize + 8,
            Kind::Add | Kind::Swap => 16,
            Kind::Read | Kind::Over | Kind::Refused => 0,
        }
    }
}

/// One end of a connection as the other knows it: its number in its process, and a word that nobody could have guessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::fabric) struct Name {
    pub number: u32,
    pub token: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_comes_as_it_went() {
        for kind in KINDS {
            for asks in [false, true] {
                let header = Header { kind, asks, len: 1 << 31 | 5, rkey: !7, number: 9, addr: !11, id: 1 << 63 | 13 };
                assert_eq!(Header::decode(&header.encode()), Some(header));
            }
        }
        for (at, byte) in [(0, 0), (0, KINDS.len() as u8 + 1), (1, 2)] {
            let mut bytes = Header::bare(Kind::Over, 1).encode();
            bytes[at] = byte;
            assert_eq!(Header::decode(&bytes), None);
        }
    }
}
