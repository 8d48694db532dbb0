/**
 * What protoc-gen-es makes of this file, by hand:
 *
 *   package fastsockets.test;
 *   message Text { string text = 1; int32 count = 2; bytes data = 3; }
 *   message Detail { string reason = 1; }
 *   service Echo {
 *     rpc Unary(Text) returns (Text);
 *     rpc Server(Text) returns (stream Text);
 *     rpc Client(stream Text) returns (Text);
 *     rpc Bidi(stream Text) returns (stream Text);
 *   }
 */
import type { Message } from '@bufbuild/protobuf'
import {
  fileDesc,
  type GenMessage,
  type GenService,
  messageDesc,
  serviceDesc,
} from '@bufbuild/protobuf/codegenv2'

const file = fileDesc(
  'CgplY2hvLnByb3RvEhBmYXN0c29ja2V0cy50ZXN0IkQKBFRleHQSEgoEdGV4dBgBIAEoCVIEdGV4dBIUCgVjb3VudBgCIAEoBVIFY291bnQSEgoEZGF0YRgDIAEoDFIEZGF0YSIgCgZEZXRhaWwSFgoGcmVhc29uGAEgASgJUgZyZWFzb24y+wEKBEVjaG8SOwoFVW5hcnkSFi5mYXN0c29ja2V0cy50ZXN0LlRleHQaFi5mYXN0c29ja2V0cy50ZXN0LlRleHQoADAAEjwKBlNlcnZlchIWLmZhc3Rzb2NrZXRzLnRlc3QuVGV4dBoWLmZhc3Rzb2NrZXRzLnRlc3QuVGV4dCgAMAESPAoGQ2xpZW50EhYuZmFzdHNvY2tldHMudGVzdC5UZXh0GhYuZmFzdHNvY2tldHMudGVzdC5UZXh0KAEwABI6CgRCaWRpEhYuZmFzdHNvY2tldHMudGVzdC5UZXh0GhYuZmFzdHNvY2tldHMudGVzdC5UZXh0KAEwAWIGcHJvdG8z',
)

export type Text = Message<'fastsockets.test.Text'> & { text: string; count: number; data: Uint8Array }
export const TextSchema: GenMessage<Text> = messageDesc(file, 0)
export type Detail = Message<'fastsockets.test.Detail'> & { reason: string }
export const DetailSchema: GenMessage<Detail> = messageDesc(file, 1)

interface Of<Kind extends string> {
  methodKind: Kind
  input: typeof TextSchema
  output: typeof TextSchema
}
export const Echo: GenService<{
  unary: Of<'unary'>
  server: Of<'server_streaming'>
  client: Of<'client_streaming'>
  bidi: Of<'bidi_streaming'>
}> = serviceDesc(file, 0)
