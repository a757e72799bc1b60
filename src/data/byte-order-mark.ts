/** Returns a text without the byte order mark at its start, which some editors and shells write before JSON. */
export function withoutByteOrderMark(text: string): string {
  return text.startsWith('\uFEFF') ? text.slice(1) : text
}
