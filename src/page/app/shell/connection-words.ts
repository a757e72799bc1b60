/** Explains what a person can do when the server is lost or refuses the page. */

const EACH_START = 'each start of a server prints a link with a new token, unless the server has a token file'

/** @param hasSeen whether the page has already shown data of this server */
export function lossText(why: string, hasSeen: boolean): string {
  const stale = hasSeen ? ' The page still shows the last state that it received.' : ''
  return `${why}${stale} The page keeps trying to connect. If the server has ended, start it again and open the link that it prints, because ${EACH_START}.`
}

export function refusalText({ hasToken, hasSeen }: { readonly hasToken: boolean; readonly hasSeen: boolean }): string {
  const why = !hasToken
    ? 'This address has no token in it.'
    : hasSeen
      ? `The server was started again: ${EACH_START}.`
      : `This is not the token of this server: ${EACH_START}.`
  return `${why} Open the whole link, with its #token=…, or paste it here. The server printed the link in its terminal, or in the log of the MCP client.`
}

export const RESTARTED =
  'The server was started again. Tasks that the previous server had only in memory are gone. Tasks in a store are still here.'
